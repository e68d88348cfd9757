//! The workload: operations of every outcome, alone and in batches, with retries, idle time and reopening in between.

use std::time::Duration;

use counterfoil::{Decision, Failure, Operation, OperationType, Reply, Retention, Slot, Table, Tx};

/// The operation type of everything that has a receipt.
pub(crate) const ORDER: OperationType = OperationType::new("order");

/// One whose receipts are forgotten at once: its one key is free again for the next operation.
pub(crate) const FLEETING: OperationType = OperationType::new("fleeting").retention(FORGOTTEN);

const FORGOTTEN: Retention = Retention { replay: Duration::ZERO, refuse: Duration::ZERO };

/// Amount and note by name.
pub(crate) const ORDERS: Table<String, (u64, String)> = Table::new("orders");
/// Sums of amounts: a mutation that is done twice shows here.
pub(crate) const TOTALS: Table<u32, u64> = Table::new("totals").bincode();
/// The last few operations: rows come and go.
pub(crate) const RECENT: Table<u32, Vec<u8>> = Table::raw("recent");

/// How an operation ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Inserts a row in one table, updates one in another, inserts and removes in a third.
    Create,
    /// The same with a row of this many bytes.
    Large(usize),
    /// Removes the first row of a table and inserts one that says so.
    Move,
    /// Writes, then says no: the reply is stored and the row is not.
    Reject,
    /// Writes, then fails: nothing is stored.
    Fail,
    /// Writes, then panics (without the hook's noise): nothing is stored.
    Panic,
    /// Has an error of a table, ignores it and answers: nothing is stored.
    Swallow,
    /// A plain write, without a receipt.
    Write,
    /// Takes the place of the last one of its kind, whose receipt is forgotten.
    Fleeting,
}

/// One operation. Its number is its key and decides its amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Op {
    pub(crate) id: u32,
    pub(crate) kind: Kind,
}

impl Op {
    /// Whether the log gets an entry for it.
    pub(crate) const fn has_frame(self) -> bool {
        !matches!(self.kind, Kind::Fail | Kind::Panic | Kind::Swallow)
    }

    /// Whether its entry in the log names a slot.
    pub(crate) const fn has_slot(self) -> bool {
        self.has_frame() && !matches!(self.kind, Kind::Write)
    }

    /// Whether it leaves a receipt that lasts.
    pub(crate) const fn has_receipt(self) -> bool {
        self.has_slot() && !matches!(self.kind, Kind::Fleeting)
    }

    pub(crate) const fn amount(self) -> u64 {
        1000 + self.id as u64
    }

    pub(crate) const fn bucket(self) -> u32 {
        self.id % 4
    }

    /// The row that is there if and only if the mutation is, as long as nobody moves it.
    pub(crate) fn row(self) -> String {
        match self.kind {
            Kind::Move => format!("moved-{:04}", self.id),
            Kind::Write => format!("write-{:04}", self.id),
            Kind::Fleeting => format!("fleeting-{:04}", self.id),
            Kind::Create | Kind::Large(_) | Kind::Reject | Kind::Fail | Kind::Panic | Kind::Swallow => {
                format!("order-{:04}", self.id)
            }
        }
    }

    pub(crate) fn note_bytes(self) -> usize {
        match self.kind {
            Kind::Large(bytes) => bytes,
            Kind::Create
            | Kind::Move
            | Kind::Reject
            | Kind::Fail
            | Kind::Panic
            | Kind::Swallow
            | Kind::Write
            | Kind::Fleeting => 20,
        }
    }

    /// Three tenants, by number; the first one has most of it.
    fn tenant(self) -> &'static str {
        ["acme", "acme", "bolt", "acme", "cork"][self.id as usize % 5]
    }

    pub(crate) fn slot(self) -> Slot {
        if self.kind == Kind::Fleeting {
            return Slot::new("acme", "alice", FLEETING.name(), "again").expect("a good slot");
        }
        Slot::new(self.tenant(), "alice", ORDER.name(), format!("key-{}", self.id)).expect("a good slot")
    }

    pub(crate) fn request(self) -> Operation {
        self.request_for(self.amount())
    }

    /// The same key for another amount is a conflict.
    pub(crate) fn request_for(self, amount: u64) -> Operation {
        let request = if self.kind == Kind::Fleeting {
            FLEETING.request("acme", "alice", "again").expect("a good slot")
        } else {
            ORDER.request(self.tenant(), "alice", format!("key-{}", self.id)).expect("a good slot")
        };
        request.json(&(self.id, amount)).expect("plain numbers")
    }

    /// What its closure does.
    pub(crate) fn execute(self, tx: &Tx<'_>) -> Result<Decision, Failure> {
        let orders = tx.table(&ORDERS)?;
        let row = (self.amount(), "n".repeat(self.note_bytes()));
        let mut moved = None;
        if self.kind == Kind::Move
            && let Some((name, _)) = orders.first()?
        {
            orders.remove(&name)?;
            moved = Some(name);
        }
        orders.insert_new(self.row(), &row)?;
        if self.kind == Kind::Swallow {
            assert!(orders.insert_new(self.row(), &row).is_err(), "the row is there already");
        }
        let totals = tx.table(&TOTALS)?;
        if totals.update(self.bucket(), |total| *total += self.amount())?.is_none() {
            totals.put(self.bucket(), &self.amount())?;
        }
        let total = totals.get(self.bucket())?;
        let recent = tx.table(&RECENT)?;
        recent.put(self.id, &vec![7; 30])?;
        if let Some(before) = self.id.checked_sub(3) {
            recent.remove(before)?;
        }
        match self.kind {
            Kind::Create | Kind::Large(_) | Kind::Move | Kind::Swallow | Kind::Write | Kind::Fleeting => {
                Ok(Reply::created().resource_id(self.row()).json(&(total, moved))?.into())
            }
            Kind::Reject => Ok(Decision::Reject(Reply::new(409)?.json(&self.id)?)),
            Kind::Fail => Err(Failure::message("not today")),
            Kind::Panic => std::panic::resume_unwind(Box::new("an operation's own panic")),
        }
    }
}

/// One step of the workload.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    One(Op),
    /// Submitted together, committed by one sync.
    Batch(Vec<Op>),
    /// An operation that was answered is asked for again.
    Retry(Op),
    /// Its key comes with another request.
    Conflict(Op),
    /// Time passes, and the store does whatever is due.
    Idle,
    Reopen,
    /// The state file is rewritten.
    Compact,
    /// Somebody who never asked for anything is erased, and what was erased is taken out of every file.
    Purge,
}

/// Fifty operations and what happens between them.
pub(crate) fn script() -> Vec<Step> {
    let mut steps = Vec::new();
    let mut before = Vec::new();
    let mut id = 0;
    let mut op = |kind| {
        id += 1;
        Op { id, kind }
    };
    for round in 0..5 {
        let (first, second) = (op(Kind::Create), op(Kind::Write));
        steps.extend([Step::One(first), Step::One(second), Step::Retry(first)]);
        let batch = vec![op(Kind::Create), op(Kind::Create), op(Kind::Move), op(Kind::Reject)];
        before.extend(batch[..2].iter().copied());
        steps.extend([Step::Batch(batch), Step::Idle]);
        let large = op(Kind::Large(if round % 2 == 1 { 160_000 } else { 2_000 }));
        steps.extend([Step::One(op(Kind::Fail)), Step::One(large), Step::Conflict(first)]);
        let last = op(Kind::Create);
        let ending = if round == 2 { op(Kind::Panic) } else { op(Kind::Large(100_000)) };
        steps.extend([Step::Retry(before[0]), Step::One(last), Step::One(ending)]);
        if round % 2 == 1 {
            steps.push(Step::Reopen);
        }
    }
    steps
}

/// The operations of a script in the order in which they commit.
pub(crate) fn operations(script: &[Step]) -> Vec<Op> {
    let mut all = Vec::new();
    for step in script {
        match step {
            Step::One(op) => all.push(*op),
            Step::Batch(ops) => all.extend(ops),
            Step::Retry(_) | Step::Conflict(_) | Step::Idle | Step::Reopen | Step::Compact | Step::Purge => {}
        }
    }
    all
}
