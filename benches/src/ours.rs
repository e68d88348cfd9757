//! This store.

use std::path::Path;
use std::time::{Duration, Instant};

use counterfoil::{Limits, OperationType, Reply, Store, Table, Tx};

use crate::failure::{During as _, Failure, Outcome};
use crate::peer::{Client, Peer};
use crate::workload::{Keys, Op, Workload};

const CREATE_ORDER: OperationType = OperationType::new("create_order");
const ORDERS: Table<[u8; 16], Vec<u8>> = Table::raw("orders");

/// A folder that needs longer than this for a few MiB does not come back.
const SETTLE_MAX: Duration = Duration::from_secs(60);
/// Few enough to fit into a store's first segment, which is cut to what was used when the store is closed.
const CALIBRATION_OPERATIONS: u64 = 100;

/// A store with its defaults, save the bytes of log between two checkpoints.
pub(crate) struct Counterfoil {
    store: Store,
}

impl Counterfoil {
    pub(crate) fn open(directory: &Path, checkpoint_log_bytes: u64) -> Outcome<Self> {
        let mut limits = Limits::default();
        limits.checkpoint_log_bytes = checkpoint_log_bytes;
        let builder = Store::builder().operation(&CREATE_ORDER).table(&ORDERS).limits(limits);
        Ok(Self { store: builder.open(directory.join("store")).during("opening the store")? })
    }
}

impl Peer for Counterfoil {
    fn client(&self) -> Box<dyn Client + '_> {
        Box::new(self)
    }

    fn checkpoints(&self) -> u64 {
        self.store.stats().checkpoints
    }

    fn settle(&self) -> Outcome<()> {
        let started = Instant::now();
        loop {
            let stats = self.store.stats();
            if let Some(cause) = stats.stopped {
                return Err(Failure::new(format!("the store stopped: {cause}"), "see whether the disk is full"));
            }
            if stats.frozen_bytes == 0 {
                return Ok(());
            }
            if started.elapsed() > SETTLE_MAX {
                return Err(Failure::new(
                    format!("the folder has not caught up after {} s", SETTLE_MAX.as_secs()),
                    "the disk is very slow or the folder hangs: look at the process with a debugger",
                ));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn finish(self: Box<Self>) -> Outcome<u64> {
        let orders = self.store.read(|view| view.table(&ORDERS).and_then(|orders| orders.len()));
        let orders = orders.during("counting the store's orders")?;
        self.store.close().during("closing the store")?;
        Ok(orders)
    }
}

impl Client for &Counterfoil {
    fn execute(&mut self, op: Op) -> Outcome<()> {
        let request = CREATE_ORDER.request("tenant-1", "actor-1", op.key).during("making a request")?;
        let closure = move |tx: &Tx<'_>| {
            tx.table(&ORDERS)?.put(op.key, &op.order.to_vec())?;
            Ok(Reply::created().bytes("application/octet-stream", op.reply))
        };
        let receipt = self.store.execute(request.bytes(op.order), closure).during("executing an operation")?;
        if receipt.is_replayed() {
            return Err(Failure::new("a key came twice", "this is a fault of the benchmark: report the seed"));
        }
        Ok(())
    }
}

/// What the store appends to its log for one operation, measured: the same operations with and without.
pub(crate) fn frame_bytes(directory: &Path, seed: u64) -> Outcome<usize> {
    let log_bytes = |operations: u64| -> Outcome<u64> {
        let own = directory.join(format!("frame-{operations}"));
        std::fs::create_dir_all(&own).during("making a directory to measure a frame")?;
        let peer = Counterfoil::open(&own, u64::MAX)?;
        let workload = Workload::new(Keys::Ordered, seed);
        for _ in 0..operations {
            peer.client().execute(workload.next())?;
        }
        Box::new(peer).finish()?;
        let bytes = directory_bytes(&own.join("store").join("log")).during("measuring a frame")?;
        std::fs::remove_dir_all(&own).during("removing what a frame was measured with")?;
        Ok(bytes)
    };
    let bytes = log_bytes(CALIBRATION_OPERATIONS)?.saturating_sub(log_bytes(0)?) / CALIBRATION_OPERATIONS;
    usize::try_from(bytes).during("measuring a frame")
}

fn directory_bytes(directory: &Path) -> std::io::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(directory)? {
        bytes += entry?.metadata()?.len();
    }
    Ok(bytes)
}
