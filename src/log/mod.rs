//! The operation log: append-only frames in segment files.
//!
//! An operation is committed when its frame is synced. This layer numbers and orders frames, proves which of them are
//! durable and finds them again after a crash; what a payload means is not its business.
//!
//! Invariants, cited where they are kept and where they are tested:
//!
//! * **L1** A segment has its final name only when its content is durable, and is used only when its name is. So a bad
//!   header is damage, never a torn write. A segment is written by one opening, front to back, and never again.
//! * **L2** Every checksum begins with store, segment epoch, ordinal and offset. Zeros, stale, misplaced and foreign
//!   frames are not frames.
//! * **L3** The ordinals of an epoch follow each other from 0; only the oldest epoch may lack its first segments. An
//!   epoch's first segment, and no other, says after which operation it continues.
//! * **L4** Sequences start at 1. An entry's `durable_before` is below its own sequence, a mark's at most the last
//!   sequence, which it repeats. A mark is no operation: not numbered, not shown, not copied.
//! * **L5** `durable_before` names only what the writing process saw synced, or what recovery proved. A batch is
//!   written after the one before was synced, and lies in one segment.
//! * **L6** An operation counts in the highest epoch that continues after a smaller sequence. A frame above the
//!   `continues_after` of a later epoch is dead. Every epoch but the last reaches the next one's `continues_after`.
//! * **L7** If anything that is proven durable cannot be read, recovery fails and changes nothing.
//! * **L8** Recovery answers only from what it made durable itself: frames that were merely read are copied into the
//!   new epoch's first segment before that gets its name.
//! * **L9** After a failed write or sync the appender takes nothing more.
//! * **L10** Segments are removed oldest first, each removal durable before the next.

use std::fmt;

mod appender;
mod check;
mod error;
mod frame;
#[cfg(feature = "testing")]
pub(crate) mod fuzz;
mod limits;
mod mutation;
mod name;
mod orphans;
mod reader;
pub(crate) mod record;
mod recover;
mod renew;
mod retain;
mod scan;
mod segment;
mod tail;
mod walk;

#[cfg(test)]
mod record_tests;
#[cfg(test)]
mod testdisk;
#[cfg(test)]
mod tests;

pub(crate) use appender::{Appender, OutgoingFrame};
pub(crate) use check::{Extent, check_all};
pub(crate) use error::{AppendError, LogError, PrepareError};
pub(crate) use frame::{Frame, encoded_frame_bytes};
pub(crate) use name::LOG_DIR;
pub(crate) use reader::LogReader;
pub(crate) use recover::{CheckpointState, NewEpoch, Recovered, RecoveryReport, recover};
pub(crate) use renew::finish_renewals;
pub(crate) use retain::{Keep, Removable, Removal, RemoveError, Retention, remove_oldest};
pub(crate) use segment::{PreparedSegment, SegmentSpec, prepare_segment};
#[cfg(test)]
use walk::oldest_sequence;

/// Whose log it is: a random number made with the store.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct StoreId(pub(crate) [u8; 16]);

impl StoreId {
    /// As one number, for the state file.
    pub(crate) const fn as_u128(self) -> u128 {
        u128::from_be_bytes(self.0)
    }
}

impl fmt::Debug for StoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
