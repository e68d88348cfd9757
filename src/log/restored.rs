//! The log of a store that is restored: one segment, which continues after what the backup has.

use std::sync::Arc;

use super::StoreId;
use super::appender::{Appender, OutgoingFrame};
use super::error::{AppendError, LogError};
use super::frame::{FrameHeader, FrameKind, Seed, encode, encoded_frame_bytes};
use super::limits::{HEADER_BYTES, MARK_BYTES, SegmentSizes};
use super::name::{LOG_DIR, SegmentName};
use super::segment::{Draft, SegmentHeader};
use crate::disk::Disk;

/// What the log begins with.
#[derive(Debug)]
pub(crate) struct RestoredLog<'a> {
    pub(crate) epoch: u64,
    /// The last sequence that the backup has.
    pub(crate) continues_after: u64,
    /// The store's time of the entries.
    pub(crate) time_ms: u64,
    pub(crate) created_ms: u64,
    /// Records of the first entries.
    pub(crate) payloads: &'a [Vec<u8>],
}

/// Writes the log, durable when it returns. Nothing else may be in its directory.
pub(crate) fn begin_restored(disk: &Arc<dyn Disk>, store_id: StoreId, log: &RestoredLog<'_>) -> Result<(), LogError> {
    let name = SegmentName { epoch: log.epoch, ordinal: 0 };
    let frames: u64 = log.payloads.iter().map(|payload| encoded_frame_bytes(payload.len() as u64)).sum();
    let bytes = HEADER_BYTES + frames + 2 * MARK_BYTES;
    let header = SegmentHeader { name, continues_after: Some(log.continues_after), created_ms: log.created_ms };
    let draft = Draft::create(&**disk, store_id, &header, bytes)?;
    let mut mark = Vec::new();
    let proven = FrameHeader {
        kind: FrameKind::Mark,
        epoch: log.epoch,
        sequence: log.continues_after,
        time_ms: log.created_ms,
        durable_before: log.continues_after,
        payload_len: 0,
    };
    encode(&mut mark, &Seed::new(store_id, name), HEADER_BYTES, &proven, &[]);
    draft.write(HEADER_BYTES, &mark)?;
    let offset = HEADER_BYTES + mark.len() as u64;
    // It is closed below and never rolls.
    let sizes = SegmentSizes { first: bytes, max: bytes };
    let mut appender = Appender::new(Arc::clone(disk), store_id, draft.publish()?, offset, log.continues_after, sizes);
    let frames: Vec<OutgoingFrame<'_>> = (log.continues_after + 1..)
        .zip(log.payloads)
        .map(|(sequence, payload)| OutgoingFrame { sequence, time_ms: log.time_ms, payload })
        .collect();
    let failed = |error: AppendError| LogError::Io { file: LOG_DIR.to_owned(), source: std::io::Error::other(error) };
    appender.append(&frames).map_err(failed)?;
    appender.sync().map_err(failed)?;
    appender.close(None, log.time_ms).map_err(failed)
}
