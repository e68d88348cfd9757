//! The writing end: one opening's active segment.
//!
//! The order of calls is the caller's contract: `append` (one batch), `sync`, then the next batch. An operation is
//! committed when the `sync` behind its `append` returned, not before.

use std::io;
use std::sync::Arc;

use super::StoreId;
use super::error::AppendError;
use super::frame::{FrameHeader, FrameKind, Seed, encode, encoded_frame_bytes};
use super::limits::{FRAME_PAYLOAD_BYTES_MAX, HEADER_BYTES, MARK_BYTES, SCRATCH_BYTES_KEPT, segment_bytes};
use super::name::{LOG_DIR, SegmentName};
use super::segment::{PreparedSegment, SegmentSpec};
use crate::base::mutant::{self, Mutant};
use crate::disk::Disk;

/// An operation to append. Epoch and `durable_before` are the appender's to know.
#[derive(Clone, Copy)]
pub(crate) struct OutgoingFrame<'a> {
    pub(crate) sequence: u64,
    pub(crate) time_ms: u64,
    pub(crate) payload: &'a [u8],
}

impl std::fmt::Debug for OutgoingFrame<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OutgoingFrame").field("sequence", &self.sequence).finish_non_exhaustive()
    }
}

/// Where a batch went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Appended {
    pub(crate) segment: SegmentName,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

/// Writes the frames of one opening.
#[derive(Debug)]
pub(crate) struct Appender {
    disk: Arc<dyn Disk>,
    store_id: StoreId,
    segment: PreparedSegment,
    seed: Seed,
    /// What an epoch's first segment is planned for; later ones double.
    segment_bytes_first: u64,
    /// Where the next frame goes.
    offset: u64,
    /// The last sequence appended.
    last: u64,
    /// The last sequence that this process saw synced (L5).
    durable: u64,
    /// The last sequence that a mark in the log proves durable.
    marked: u64,
    /// Whether anything was appended since the last sync.
    unsynced: bool,
    /// Set by the first failed write or sync, and never cleared (L9).
    failed: bool,
    scratch: Vec<u8>,
}

impl Appender {
    /// Continues behind what recovery wrote into an epoch's first segment, all of which is durable and marked.
    pub(super) fn new(
        disk: Arc<dyn Disk>,
        store_id: StoreId,
        segment: PreparedSegment,
        offset: u64,
        durable: u64,
        segment_bytes_first: u64,
    ) -> Self {
        let seed = Seed::new(store_id, segment.name);
        Self {
            disk,
            store_id,
            segment,
            seed,
            segment_bytes_first,
            offset,
            last: durable,
            durable,
            marked: durable,
            unsynced: false,
            failed: false,
            scratch: Vec::new(),
        }
    }

    /// This opening's epoch.
    pub(crate) fn epoch(&self) -> u64 {
        self.segment.name.epoch
    }

    /// The segment being written.
    #[cfg(test)]
    pub(crate) fn segment(&self) -> SegmentName {
        self.segment.name
    }

    /// The last sequence appended.
    #[cfg(test)]
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// The last sequence that this process saw synced: the bound for readers.
    #[cfg(test)]
    pub(crate) fn durable(&self) -> u64 {
        self.durable
    }

    /// Whether a write or sync failed, after which the appender refuses everything.
    #[cfg(test)]
    pub(crate) fn has_failed(&self) -> bool {
        self.failed
    }

    /// Bytes left for batches; room for one mark is kept back, so that the last batch can always be proven.
    pub(crate) fn room(&self) -> u64 {
        self.segment.bytes.saturating_sub(self.offset).saturating_sub(MARK_BYTES)
    }

    /// Whether a batch of this many bytes (the sum of [`encoded_frame_bytes`]) fits into the active segment.
    pub(crate) fn has_room(&self, batch_bytes: u64) -> bool {
        batch_bytes <= self.room()
    }

    /// The segment after the active one, large enough for a batch of this many bytes (0 when none is known).
    pub(crate) fn next_segment_spec(&self, batch_bytes: u64) -> SegmentSpec {
        let ordinal = self.segment.name.ordinal.checked_add(1).expect("2^32 segments of one opening are never reached");
        let name = SegmentName { epoch: self.epoch(), ordinal };
        let needed = HEADER_BYTES.saturating_add(batch_bytes).saturating_add(MARK_BYTES);
        SegmentSpec { name, bytes: segment_bytes(self.segment_bytes_first, ordinal).max(needed) }
    }

    /// Appends a batch in one contiguous write, and does not sync it.
    ///
    /// # Errors
    /// [`AppendError::nothing_written`] tells whether the log still works. If not, the batch may or may not survive.
    pub(crate) fn append(&mut self, frames: &[OutgoingFrame<'_>]) -> Result<Appended, AppendError> {
        self.check_working()?;
        let bytes = self.check_batch(frames)?;
        self.scratch.clear();
        for frame in frames {
            let header = FrameHeader {
                kind: FrameKind::Entry,
                epoch: self.epoch(),
                sequence: frame.sequence,
                time_ms: frame.time_ms,
                durable_before: self.durable,
                payload_len: u32::try_from(frame.payload.len()).expect("check_batch bounds it"),
            };
            let offset = self.offset + self.scratch.len() as u64;
            encode(&mut self.scratch, &self.seed, offset, &header, frame.payload);
        }
        debug_assert_eq!(self.scratch.len() as u64, bytes, "the encoder writes what it announced");
        let appended = self.write_scratch()?;
        self.last += frames.len() as u64;
        Ok(appended)
    }

    /// Appends a mark, if the log does not yet prove that everything appended is durable. Returns whether it did, in
    /// which case the mark needs a `sync` as well.
    ///
    /// # Errors
    /// As [`Self::append`]. Only synced frames can be marked.
    pub(crate) fn append_mark(&mut self, time_ms: u64) -> Result<bool, AppendError> {
        self.check_working()?;
        if self.marked == self.durable || self.unsynced {
            return Ok(false);
        }
        let header = FrameHeader {
            kind: FrameKind::Mark,
            epoch: self.epoch(),
            sequence: self.last,
            time_ms,
            durable_before: self.durable,
            payload_len: 0,
        };
        self.scratch.clear();
        encode(&mut self.scratch, &self.seed, self.offset, &header, &[]);
        self.write_scratch()?;
        self.marked = self.durable;
        Ok(true)
    }

    /// Makes everything appended durable.
    ///
    /// # Errors
    /// Whatever was not synced may or may not survive, and there is no second try (L9).
    pub(crate) fn sync(&mut self) -> Result<(), AppendError> {
        self.check_working()?;
        if let Err(source) = self.sync_file() {
            self.failed = true;
            return Err(AppendError::from_io(self.segment.name.file(), source));
        }
        self.durable = self.last;
        self.unsynced = false;
        Ok(())
    }

    fn sync_file(&self) -> io::Result<()> {
        let file = &self.segment.file;
        let synced = if mutant::is(Mutant::SyncSkipped) { Ok(()) } else { file.sync_data() };
        if synced.is_err() && mutant::is(Mutant::PoisonIgnored) { file.sync_data() } else { synced }
    }

    /// Makes a prepared segment the active one. What it replaces is complete and stays as it is.
    ///
    /// # Errors
    /// Nothing was changed.
    pub(crate) fn roll_to(&mut self, next: PreparedSegment) -> Result<(), AppendError> {
        self.check_working()?;
        let reason = if self.unsynced {
            // Else frames in the new segment could survive without those before them.
            Some("frames of the active segment are not synced")
        } else if next.name != self.next_segment_spec(0).name {
            Some("it is not the next segment")
        } else {
            None
        };
        if let Some(reason) = reason {
            return Err(AppendError::WrongSegment { file: next.name.file(), reason });
        }
        self.seed = Seed::new(self.store_id, next.name);
        self.offset = HEADER_BYTES;
        self.segment = next;
        Ok(())
    }

    /// Ends the opening: proves the last batch, gives back unused space, removes a segment prepared in vain.
    ///
    /// # Errors
    /// Everything synced before stays durable, whatever fails here.
    pub(crate) fn close(mut self, unused: Option<PreparedSegment>, time_ms: u64) -> Result<(), AppendError> {
        self.check_working()?;
        if self.unsynced {
            self.sync()?;
        }
        if self.append_mark(time_ms)? {
            self.sync()?;
        }
        // A segment that is cut off must end with a mark: a blank one keeps its length.
        if self.offset > HEADER_BYTES {
            let file = self.segment.name.file();
            let trim = || {
                self.segment.file.set_len(self.offset)?;
                self.segment.file.sync_data()
            };
            trim().map_err(|source| AppendError::from_io(file, source))?;
        }
        if let Some(unused) = unused {
            let file = unused.name.file();
            let remove = || {
                self.disk.remove(&file)?;
                self.disk.sync_dir(LOG_DIR)
            };
            remove().map_err(|source| AppendError::from_io(file.clone(), source))?;
        }
        Ok(())
    }

    fn check_working(&self) -> Result<(), AppendError> {
        if self.failed { Err(AppendError::Failed { file: self.segment.name.file() }) } else { Ok(()) }
    }

    /// Everything that can be refused is refused before the first byte is written.
    fn check_batch(&self, frames: &[OutgoingFrame<'_>]) -> Result<u64, AppendError> {
        let mut bytes = 0_u64;
        for (expected, frame) in (self.last + 1..).zip(frames) {
            if frame.sequence != expected {
                return Err(AppendError::OutOfOrder { expected, found: frame.sequence });
            }
            let (len, max) = (frame.payload.len() as u64, u64::from(FRAME_PAYLOAD_BYTES_MAX));
            if len > max {
                return Err(AppendError::TooLarge { bytes: len, max });
            }
            bytes = bytes.saturating_add(encoded_frame_bytes(len));
        }
        let room = self.room();
        if bytes > room { Err(AppendError::NoRoom { bytes, room }) } else { Ok(bytes) }
    }

    fn write_scratch(&mut self) -> Result<Appended, AppendError> {
        let written = self.segment.file.write_all_at(self.offset, &self.scratch);
        let appended = Appended { segment: self.segment.name, offset: self.offset, bytes: self.scratch.len() as u64 };
        if self.scratch.capacity() > SCRATCH_BYTES_KEPT {
            self.scratch = Vec::new();
        }
        if let Err(source) = written {
            self.failed = true;
            return Err(AppendError::from_io(self.segment.name.file(), source));
        }
        self.offset += appended.bytes;
        self.unsynced |= appended.bytes > 0;
        Ok(appended)
    }
}
