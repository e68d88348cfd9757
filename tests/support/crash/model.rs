//! What the tables must hold after each entry of the workload, computed without the store.

use std::collections::BTreeMap;

use counterfoil::{Decision, ReadView, Reply, Store};

use crate::crash::script::{Kind, ORDERS, Op, RECENT, TOTALS};

/// The business tables: notes by their length, rows of bytes by theirs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tables {
    orders: BTreeMap<String, (u64, usize)>,
    totals: BTreeMap<u32, u64>,
    recent: BTreeMap<u32, usize>,
}

impl Tables {
    /// Reads them all from one snapshot.
    pub(crate) fn read(store: &Store) -> Self {
        store.read(Self::of).expect("the tables can be read")
    }

    /// The same, where the state file may be out of reach.
    pub(crate) fn try_read(store: &Store) -> Option<Self> {
        store.read(Self::of).ok()
    }

    pub(crate) fn of(view: &ReadView) -> Result<Self, counterfoil::TableError> {
        let mut tables = Self::default();
        for row in view.table(&ORDERS)?.range(..)? {
            let (name, (amount, note)) = row?;
            tables.orders.insert(name, (amount, note.len()));
        }
        for row in view.table(&TOTALS)?.range(..)? {
            let (bucket, total) = row?;
            tables.totals.insert(bucket, total);
        }
        for row in view.table(&RECENT)?.range(..)? {
            let (id, bytes) = row?;
            tables.recent.insert(id, bytes.len());
        }
        Ok(tables)
    }

    fn run(&mut self, op: Op) -> Decision {
        if op.kind == Kind::Reject {
            let reply = Reply::new(409).and_then(|reply| reply.json(&op.id)).expect("a reply");
            return Decision::Reject(reply);
        }
        let mut moved = None;
        if op.kind == Kind::Move
            && let Some((name, _)) = self.orders.pop_first()
        {
            moved = Some(name);
        }
        self.orders.insert(op.row(), (op.amount(), op.note_bytes()));
        let total = self.totals.entry(op.bucket()).or_default();
        *total += op.amount();
        self.recent.insert(op.id, 30);
        if let Some(before) = op.id.checked_sub(3) {
            self.recent.remove(&before);
        }
        let reply = Reply::created().resource_id(op.row()).json(&(Some(*total), moved)).expect("a reply");
        Decision::Reply(reply)
    }
}

/// One entry of the log: the operation, what it answers, and the tables after it.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) op: Op,
    pub(crate) decision: Decision,
    after: Tables,
}

impl Entry {
    pub(crate) fn reply(&self) -> &Reply {
        match &self.decision {
            Decision::Reply(reply) | Decision::Reject(reply) | Decision::Accept(reply) => reply,
        }
    }
}

/// All entries of a workload in order.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) entries: Vec<Entry>,
    empty: Tables,
}

impl Model {
    pub(crate) fn of(operations: &[Op]) -> Self {
        let mut tables = Tables::default();
        let mut entries = Vec::new();
        for op in operations.iter().filter(|op| op.has_frame()) {
            let decision = tables.run(*op);
            entries.push(Entry { op: *op, decision, after: tables.clone() });
        }
        Self { entries, empty: Tables::default() }
    }

    /// The tables after so many entries.
    pub(crate) fn after(&self, entries: usize) -> &Tables {
        entries.checked_sub(1).map_or(&self.empty, |last| &self.entries[last].after)
    }

    /// After how many entries the tables are like this; the first number, since some change nothing.
    pub(crate) fn seen(&self, tables: &Tables) -> Option<usize> {
        (0..=self.entries.len()).find(|entries| self.after(*entries) == tables)
    }

    /// Which entry an operation is.
    pub(crate) fn place(&self, op: Op) -> Option<usize> {
        self.entries.iter().position(|entry| entry.op == op)
    }
}
