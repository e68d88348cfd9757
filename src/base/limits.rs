//! Every limit of the store, with its unit and its reason. Relations between them are checked at compile time.

#[cfg(feature = "store")]
use std::time::Duration;

/// Most bytes of a tenant's name. Long enough for a UUID, a domain or an account path.
pub const TENANT_BYTES_MAX: usize = 128;
/// Most bytes of an actor's name. Long enough for an e-mail address (254, RFC 5321).
pub const ACTOR_BYTES_MAX: usize = 256;
/// Most bytes of an operation's name.
pub const OPERATION_BYTES_MAX: usize = 64;
/// Most bytes of a key. What one length byte can say, and the usual ceiling of `Idempotency-Key` headers.
pub const KEY_BYTES_MAX: usize = 255;
/// Most bytes of a trace id. A W3C `traceparent` has 55.
pub const TRACE_ID_BYTES_MAX: usize = 128;
/// Most bytes of a resource id: it outlives the reply in every tombstone, so it stays small.
pub const RESOURCE_ID_BYTES_MAX: usize = 512;
/// Most bytes of a content type.
pub const CONTENT_TYPE_BYTES_MAX: usize = 256;
/// Most headers in one reply.
pub const REPLY_HEADERS_MAX: usize = 64;
/// Most bytes of an intent's payload, and of what a provider answers: they are kept in memory until they are folded, and
/// written again with every attempt.
pub const INTENT_BYTES_MAX: usize = 64 * 1024;
/// Most intents of one operation.
pub const INTENTS_MAX: usize = 64;
/// Most bytes of a provider's reference, of the id of a delivery, and of the key of an order.
pub const REFERENCE_BYTES_MAX: usize = 256;
/// Most earlier versions that one operation may still accept: each costs a digest at every submission.
pub const OPERATION_VERSIONS_MAX: usize = 8;

/// The smallest value that [`Limits::segment_bytes_first`] takes: a page, since less saves nothing.
#[cfg(feature = "store")]
const SEGMENT_BYTES_FIRST_MIN: u64 = 4096;

/// What log segments grow to by doubling. Large enough that rolling is rare (about once in 60,000 operations), small
/// enough that removing whole segments follows the retention policy closely and a recovery reads little.
#[cfg(feature = "store")]
pub(crate) const SEGMENT_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// The largest value that [`Limits::record_bytes_max`] takes.
pub const RECORD_BYTES_CEILING: usize = 32 * 1024 * 1024;

/// Limits of one store, set on the builder with [`crate::StoreBuilder::limits`].
///
/// Each excess is a typed error before anything is changed.
#[cfg(feature = "store")]
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Most bytes of a reply: body, headers, content type and resource id. Default 256 KiB: replies are kept for the
    /// whole replay window, so a large body belongs in a table with its id in the reply.
    pub reply_bytes_max: usize,
    /// Most bytes of one operation's record: everything it writes, its reply and its names. Default 4 MiB, ceiling
    /// [`RECORD_BYTES_CEILING`].
    pub record_bytes_max: usize,
    /// Most bytes of a table row's encoded key. Default 1,024: keys are repeated in the log, in memory and in inner
    /// pages of the state file.
    pub row_key_bytes_max: usize,
    /// Most bytes of a table row's encoded value. Default 1 MiB: it is read and written as a whole.
    pub row_bytes_max: usize,
    /// Most rows that one operation writes. Default 65,536: everyone waits behind it for all of it.
    pub operation_rows_max: usize,
    /// Most submissions waiting. Default 4,096: at the rates measured, well under a second of work.
    pub queue_operations_max: usize,
    /// Most bytes of requests waiting. Default 64 MiB.
    pub queue_bytes_max: usize,
    /// Most submissions waiting of one tenant, so that one cannot fill the queue. Default 1,024.
    pub queue_tenant_operations_max: usize,
    /// Most operations in one batch, that is behind one sync. Default 1,024.
    pub batch_operations_max: usize,
    /// Most bytes of frames in one batch, after which it is closed. Default 8 MiB.
    pub batch_bytes_max: usize,
    /// Bytes of memory map at which it is handed to the folder. Default 2 MiB.
    pub fold_bytes: usize,
    /// Bytes of memory map at which the writer waits for a lagging folder. Default 64 MiB.
    pub map_bytes_max: usize,
    /// Bytes of the first log segment of every opening; later ones double up to 32 MiB. Default 256 KiB: every opening
    /// writes one, so a new store stays small, and a busy one soon has large ones. At least 4,096.
    pub segment_bytes_first: u64,
    /// Bytes that log segments grow to. Default 32 MiB, the ceiling. The active segment and the next one are on the disk at
    /// their full size, so a store of few megabytes that should not take more than some of them sets less, for a few more
    /// renames. At least [`Limits::segment_bytes_first`].
    pub segment_bytes_max: u64,
    /// Bytes of log between two checkpoints of the state file. Default 32 MiB: a checkpoint writes every page touched
    /// since the last one, so it is paced by work and never by time.
    pub checkpoint_log_bytes: u64,
    /// Time spent folding between two checkpoints. Default 1 s: it is about what the next open would take to apply the
    /// log again.
    pub checkpoint_fold_time: Duration,
    /// Bytes of log that stay as history, behind what the next open needs: for [`crate::Store::log`], and for whoever
    /// wants to know what happened. Whole segments are removed, oldest first, once a checkpoint no longer needs them and
    /// neither this nor [`Limits::keep_log_age`] asks for them. Default 256 MiB: eight of the largest segments, some half
    /// a million operations, and a bound that small disks can bear. 0 keeps what the next open needs, `u64::MAX` keeps
    /// everything.
    pub keep_log_bytes: u64,
    /// How long entries of the log stay as history at least, however many bytes they take. Default 0, so that the log is
    /// bounded by bytes alone: at 20,000 operations a second a week is terabytes. Set it to the longest time for which a
    /// follower may be away, and give the disk the space. A clock in doubt lets nothing become old.
    pub keep_log_age: Duration,
    /// Bytes that redb may use as its cache. Default 64 MiB.
    pub cache_bytes: usize,
    /// A closure that runs longer than this is counted and traced as slow. Default 10 ms: all others wait for it.
    pub slow_closure: Duration,
    /// Never for use: one safety of the store is off. See [`crate::testing::Mutant`].
    #[cfg(feature = "mutants")]
    #[doc(hidden)]
    pub mutant: Option<super::mutant::Mutant>,
}

#[cfg(feature = "store")]
impl Default for Limits {
    fn default() -> Self {
        Self {
            reply_bytes_max: REPLY_BYTES_DEFAULT,
            record_bytes_max: RECORD_BYTES_DEFAULT,
            row_key_bytes_max: 1024,
            row_bytes_max: 1024 * 1024,
            operation_rows_max: 65_536,
            queue_operations_max: 4096,
            queue_bytes_max: 64 * 1024 * 1024,
            queue_tenant_operations_max: 1024,
            batch_operations_max: 1024,
            batch_bytes_max: 8 * 1024 * 1024,
            fold_bytes: 2 * 1024 * 1024,
            map_bytes_max: 64 * 1024 * 1024,
            segment_bytes_first: 256 * 1024,
            segment_bytes_max: SEGMENT_BYTES_MAX,
            checkpoint_log_bytes: 32 * 1024 * 1024,
            checkpoint_fold_time: Duration::from_secs(1),
            keep_log_bytes: 256 * 1024 * 1024,
            keep_log_age: Duration::ZERO,
            cache_bytes: 64 * 1024 * 1024,
            slow_closure: Duration::from_millis(10),
            #[cfg(feature = "mutants")]
            mutant: None,
        }
    }
}

#[cfg(feature = "store")]
const REPLY_BYTES_DEFAULT: usize = 256 * 1024;
#[cfg(feature = "store")]
const RECORD_BYTES_DEFAULT: usize = 4 * 1024 * 1024;

#[cfg(feature = "store")]
const _: () = assert!(REPLY_BYTES_DEFAULT < RECORD_BYTES_DEFAULT, "a reply is part of its record");
#[cfg(feature = "store")]
const _: () = assert!(RECORD_BYTES_DEFAULT <= RECORD_BYTES_CEILING);
#[cfg(feature = "store")]
const _: () =
    assert!(RECORD_BYTES_CEILING < super::encoding::ENCODED_BYTES_MAX, "what may be written must be readable");

#[cfg(feature = "store")]
impl Limits {
    /// The first relation between limits that does not hold, in words.
    pub(crate) fn fault(&self) -> Option<String> {
        let positive = [
            ("reply_bytes_max", self.reply_bytes_max),
            ("record_bytes_max", self.record_bytes_max),
            ("row_key_bytes_max", self.row_key_bytes_max),
            ("row_bytes_max", self.row_bytes_max),
            ("operation_rows_max", self.operation_rows_max),
            ("queue_operations_max", self.queue_operations_max),
            ("queue_bytes_max", self.queue_bytes_max),
            ("queue_tenant_operations_max", self.queue_tenant_operations_max),
            ("batch_operations_max", self.batch_operations_max),
            ("batch_bytes_max", self.batch_bytes_max),
            ("fold_bytes", self.fold_bytes),
        ];
        if let Some((name, _)) = positive.iter().find(|(_, value)| *value == 0) {
            return Some(format!("limit {name} is 0: it must be at least 1"));
        }
        if self.record_bytes_max > RECORD_BYTES_CEILING {
            return Some(format!(
                "limit record_bytes_max is {}: it may be at most {RECORD_BYTES_CEILING}",
                self.record_bytes_max
            ));
        }
        if self.reply_bytes_max > self.record_bytes_max || self.row_bytes_max > self.record_bytes_max {
            return Some("limits reply_bytes_max and row_bytes_max may be at most record_bytes_max".to_owned());
        }
        if !(SEGMENT_BYTES_FIRST_MIN..=SEGMENT_BYTES_MAX).contains(&self.segment_bytes_first) {
            return Some(format!(
                "limit segment_bytes_first is {}: it must be from {SEGMENT_BYTES_FIRST_MIN} to {SEGMENT_BYTES_MAX}",
                self.segment_bytes_first
            ));
        }
        if !(self.segment_bytes_first..=SEGMENT_BYTES_MAX).contains(&self.segment_bytes_max) {
            return Some(format!(
                "limit segment_bytes_max is {}: it must be from segment_bytes_first, {}, to {SEGMENT_BYTES_MAX}",
                self.segment_bytes_max, self.segment_bytes_first
            ));
        }
        if self.map_bytes_max < self.fold_bytes {
            return Some("limit map_bytes_max must be at least fold_bytes".to_owned());
        }
        None
    }
}
