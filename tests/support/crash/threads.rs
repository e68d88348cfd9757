//! A store with threads of its own, held at one place.

use counterfoil::Limits;
use counterfoil::testing::{SimDisk, VirtualClock, WALL_AT_START};

use crate::crash::harness::declared;
use crate::crash::model::{Model, Tables};
use crate::crash::script::{Kind, Op};

/// The sync of a checkpoint takes long. What is answered meanwhile is there, during it and afterwards.
pub(crate) fn a_checkpoint_that_takes_long(limits: &Limits) -> Result<(), String> {
    let mut limits = limits.clone();
    // Every fold is a checkpoint, and every batch is folded.
    (limits.fold_bytes, limits.checkpoint_log_bytes) = (1, 0);
    let (disk, clock) = (SimDisk::new(), VirtualClock::new(WALL_AT_START));
    let open = || declared().limits(limits.clone()).clock(clock.clone()).open_in(&disk);
    let closed = open().map(counterfoil::Store::close).map_err(|error| error.to_string())?;
    closed.map_err(|error| error.to_string())?;
    let store = open().map_err(|error| error.to_string())?;

    let ops: Vec<Op> = (1..=6).map(|id| Op { id, kind: Kind::Create }).collect();
    let model = Model::of(&ops);
    let gate = disk.hold_syncs_of("state.redb");
    let check = |when: &str, answered: usize| {
        for op in &ops[..answered] {
            let receipt = store.receipt(&op.slot()).map_err(|error| format!("{when}: {error}"))?;
            receipt.map(drop).ok_or(format!("{when}: {op:?} was answered and is not there"))?;
        }
        let tables = Tables::read(&store);
        if tables == *model.after(answered) { Ok(()) } else { Err(format!("{when}: the tables are {tables:#?}")) }
    };
    for (number, op) in ops.iter().enumerate() {
        let closure = *op;
        let answer = store.execute(op.request(), move |tx| closure.execute(tx));
        answer.map(drop).map_err(|error| format!("{op:?}: {error}"))?;
        gate.wait_until_blocked();
        check("while the checkpoint is under way", number + 1)?;
    }
    drop(gate);
    // Answered by the folder, after everything that it had to fold.
    drop(store.verify());
    check("after the checkpoint", ops.len())?;
    store.close().map_err(|error| error.to_string())
}
