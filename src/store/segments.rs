//! The next log segment, prepared off the writer's path.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use crate::base::mutant;
use crate::disk::Disk;
use crate::log::{Appender, PrepareError, PreparedSegment, SegmentSpec, StoreId, prepare_segment};

/// What it takes to prepare a segment.
#[derive(Clone, Debug)]
pub(super) struct Workshop {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) store_id: StoreId,
}

impl Workshop {
    fn prepare(&self, order: Order) -> Result<PreparedSegment, PrepareError> {
        prepare_segment(&*self.disk, self.store_id, &order.spec, order.created_ms)
    }
}

#[derive(Clone, Copy, Debug)]
struct Order {
    spec: SegmentSpec,
    created_ms: u64,
}

/// The segment after the active one: ordered ahead, taken when the active one is full.
#[derive(Debug)]
pub(super) struct NextSegment {
    workshop: Workshop,
    state: State,
    thread: Option<Thread>,
}

#[derive(Debug)]
enum State {
    None,
    /// Ordered, and prepared on the caller's thread when there is time: `manual` mode.
    Due(Order),
    /// Being prepared on the thread.
    Coming,
    Ready(PreparedSegment),
}

#[derive(Debug)]
struct Thread {
    orders: Sender<Order>,
    prepared: Receiver<Result<PreparedSegment, PrepareError>>,
    handle: JoinHandle<()>,
}

impl NextSegment {
    /// Prepares on the caller's thread.
    pub(super) const fn manual(workshop: Workshop) -> Self {
        Self { workshop, state: State::None, thread: None }
    }

    /// Prepares on a thread of its own.
    pub(super) fn threaded(workshop: Workshop) -> std::io::Result<Self> {
        let (orders, inbox) = channel::<Order>();
        let (outbox, prepared) = channel();
        let worker = workshop.clone();
        let mutant = mutant::selected();
        let handle = std::thread::Builder::new().name("counterfoil-segments".to_owned()).spawn(move || {
            mutant.take_over();
            while let Ok(order) = inbox.recv() {
                if outbox.send(worker.prepare(order)).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { workshop, state: State::None, thread: Some(Thread { orders, prepared, handle }) })
    }

    /// Orders the next segment, unless it is there or on its way.
    pub(super) fn order(&mut self, log: &Appender, created_ms: u64) {
        if !matches!(self.state, State::None) {
            return;
        }
        let order = Order { spec: log.next_segment_spec(0), created_ms };
        self.state = match &self.thread {
            Some(thread) if thread.orders.send(order).is_ok() => State::Coming,
            Some(_) | None => State::Due(order),
        };
    }

    /// Prepares what is due on this thread. Returns whether there was anything. A failure is tried again when the
    /// segment is needed, and reported then.
    pub(super) fn prepare_due(&mut self) -> bool {
        let State::Due(order) = self.state else { return false };
        self.state = match self.workshop.prepare(order) {
            Ok(prepared) => State::Ready(prepared),
            Err(error) => {
                tracing::warn!(%error, "the next log segment cannot be prepared yet");
                State::None
            }
        };
        true
    }

    /// The next segment, large enough for a batch of this many bytes; prepared now if it is not there.
    pub(super) fn take(
        &mut self,
        log: &Appender,
        batch_bytes: u64,
        created_ms: u64,
    ) -> Result<PreparedSegment, PrepareError> {
        let needed = log.next_segment_spec(batch_bytes);
        self.settle();
        let small = match std::mem::replace(&mut self.state, State::None) {
            State::Ready(prepared) if prepared.bytes >= needed.bytes => return Ok(prepared),
            State::Ready(small) => Some(small),
            State::None | State::Due(_) | State::Coming => None,
        };
        // One that is too small is replaced by renaming the larger one over it, so that a reader who has listed its name
        // finds it.
        self.workshop.prepare(Order { spec: needed, created_ms }).inspect_err(|error| {
            // It is still good for smaller batches, unless the failure came when its name was taken already.
            if let Some(small) = small
                && !error.took_the_name()
            {
                self.state = State::Ready(small);
            }
        })
    }

    /// Waits for what is on its way.
    fn settle(&mut self) {
        if matches!(self.state, State::Coming) {
            let prepared = self.thread.as_ref().and_then(|thread| thread.prepared.recv().ok());
            self.state = match prepared {
                Some(Ok(prepared)) => State::Ready(prepared),
                Some(Err(error)) => {
                    tracing::warn!(%error, "the next log segment could not be prepared ahead");
                    State::None
                }
                None => State::None,
            };
        }
    }

    /// Ends the thread and hands over a segment that was prepared in vain.
    pub(super) fn finish(mut self) -> Option<PreparedSegment> {
        self.settle();
        if let Some(Thread { orders, prepared, handle }) = self.thread.take() {
            drop((orders, prepared));
            if handle.join().is_err() {
                tracing::error!("the thread that prepares log segments panicked");
            }
        }
        match self.state {
            State::Ready(prepared) => Some(prepared),
            State::None | State::Due(_) | State::Coming => None,
        }
    }
}
