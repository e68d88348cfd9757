//! Reads the frames of one segment, in order or by searching for them.

use std::io;
use std::sync::Arc;

use super::StoreId;
use super::error::LogError;
use super::frame::{CheckedHeader, Frame, FrameHeader, FrameKind, NotAHeader, Seed, decode_header, may_be_header};
use super::limits::{FRAME_ALIGN, FRAME_HEADER_BYTES, HEADER_BYTES, HEADER_LEN, MARK_BYTES, READ_CHUNK_BYTES, index};
use super::name::SegmentName;
use super::segment::SegmentHeader;
use crate::disk::{Disk, DiskFile, OpenMode};

/// What lies at the reader's place.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Scanned {
    Entry(Frame),
    Mark(FrameHeader),
    /// No frame; the reader stays here.
    End(End),
}

/// Where and why a segment's frames end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) offset: u64,
    pub(crate) reason: EndReason,
}

/// Why there is no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndReason {
    /// The file ends.
    Exhausted,
    /// Nothing was written here.
    Zeros,
    /// Something was, and it is no header.
    BadHeader,
    /// The header is good, what follows is not its payload.
    BadPayload(FrameHeader),
}

impl End {
    /// Whether the segment may simply end here.
    pub(crate) fn is_clean(&self) -> bool {
        matches!(self.reason, EndReason::Exhausted | EndReason::Zeros)
    }
}

/// What a search found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Search {
    /// The first good header, and its offset.
    pub(crate) found: Option<(u64, FrameHeader)>,
    /// The end of the last bytes before it that are not zero; where the search began if there are none.
    pub(crate) written_to: u64,
}

/// One segment, open for reading.
#[derive(Debug)]
pub(crate) struct SegmentReader {
    header: SegmentHeader,
    file: Arc<dyn DiskFile>,
    /// The file's length when it was opened. Live segments have their full length from the start.
    len: u64,
    seed: Seed,
    offset: u64,
    /// The end of the last mark that was read in order.
    marked_to: Option<u64>,
    /// File content from `buf_at` on; may be older than the file when another thread appends.
    buf: Vec<u8>,
    buf_at: u64,
}

impl SegmentReader {
    /// Opens a segment and checks its header.
    pub(crate) fn open(disk: &dyn Disk, store_id: StoreId, name: SegmentName) -> Result<Self, LogError> {
        let path = name.file();
        let file =
            disk.open(&path, OpenMode::Read).map_err(|source| match source.kind() == io::ErrorKind::NotFound {
                true => LogError::MissingSegment { file: path.clone() },
                false => LogError::Io { file: path.clone(), source },
            })?;
        let len = file.len().map_err(LogError::io(&path))?;
        if len < HEADER_BYTES {
            return Err(LogError::BadHeader { file: path, reason: "the file is shorter than a header" });
        }
        let mut bytes = [0; HEADER_LEN];
        file.read_exact_at(0, &mut bytes).map_err(LogError::io(&path))?;
        let header = SegmentHeader::decode(&bytes, store_id, name)?;
        let seed = Seed::new(store_id, name);
        Ok(Self { header, file, len, seed, offset: HEADER_BYTES, marked_to: None, buf: Vec::new(), buf_at: 0 })
    }

    pub(crate) fn header(&self) -> &SegmentHeader {
        &self.header
    }

    pub(crate) fn name(&self) -> SegmentName {
        self.header.name
    }

    pub(crate) fn file_bytes(&self) -> u64 {
        self.len
    }

    /// Where the next frame is expected.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Goes on at another place.
    pub(crate) fn seek(&mut self, offset: u64) {
        debug_assert!(offset.is_multiple_of(FRAME_ALIGN), "frames are aligned");
        self.offset = offset;
    }

    /// Reads the frame at the reader's place and moves behind it.
    pub(crate) fn next(&mut self) -> Result<Scanned, LogError> {
        let offset = self.offset;
        let mut scanned = self.read_frame(offset)?;
        if matches!(scanned, Scanned::End(_)) {
            // What was buffered may be older than what another thread has synced since.
            self.buf.clear();
            scanned = self.read_frame(offset)?;
        }
        match &scanned {
            Scanned::Entry(frame) => self.offset += frame.header.frame_bytes(),
            Scanned::Mark(header) => {
                self.offset += header.frame_bytes();
                self.marked_to = Some(self.offset);
            }
            Scanned::End(_) => {}
        }
        Ok(scanned)
    }

    /// Whether the end of the file is missing, asked where the frames end. A segment has its full length, room for one
    /// more mark included, from before its first frame on, and only a close in good order makes it shorter: it then ends
    /// with the mark that proves everything in it. So a frame that reaches beyond the file, or an end without room for a
    /// mark, is no torn write.
    pub(crate) fn is_cut_short(&mut self) -> Result<bool, LogError> {
        let (offset, left) = (self.offset, self.len - self.offset);
        if left >= MARK_BYTES {
            let seed = self.seed.clone();
            let bytes = self.bytes_at(offset, MARK_BYTES)?.and_then(<[u8]>::first_chunk);
            let claimed = bytes.and_then(|bytes| decode_header(bytes, &seed, offset, u64::MAX).ok());
            return Ok(claimed.is_some_and(|claimed| claimed.header.frame_bytes() > left));
        }
        if self.marked_to != Some(offset) {
            return Ok(true);
        }
        let behind = self.bytes_at(offset, left)?;
        Ok(behind.is_none_or(|bytes| bytes.iter().any(|&byte| byte != 0)))
    }

    /// The header of the segment's first operation, without moving. Its payload is not looked at.
    pub(crate) fn first_entry(&mut self) -> Result<Option<FrameHeader>, LogError> {
        let mut offset = HEADER_BYTES;
        while let Ok(checked) = self.header_at(offset)? {
            match checked.header.kind {
                FrameKind::Entry => return Ok(Some(checked.header)),
                FrameKind::Mark => offset += checked.header.frame_bytes(),
            }
        }
        Ok(None)
    }

    /// The sequence of the segment's first operation.
    pub(crate) fn first_sequence(&mut self) -> Result<Option<u64>, LogError> {
        Ok(self.first_entry()?.map(|header| header.sequence))
    }

    /// Whether nothing but a mark was ever written behind the header, as far as the first frame tells.
    pub(crate) fn begins_blank(&mut self) -> Result<bool, LogError> {
        Ok(match self.read_frame(HEADER_BYTES)? {
            Scanned::Entry(_) => false,
            Scanned::Mark(_) => true,
            Scanned::End(end) => end.is_clean(),
        })
    }

    /// Looks for a good header at `from` and every aligned place behind it, without moving.
    pub(crate) fn search(&mut self, from: u64) -> Result<Search, LogError> {
        let mut written_to = from;
        let mut offset = from;
        while let Some(word) = self.bytes_at(offset, FRAME_ALIGN)? {
            let is_written = word.iter().any(|&byte| byte != 0);
            if self.may_be_header_at(offset)?
                && let Ok(checked) = self.header_at(offset)?
            {
                return Ok(Search { found: Some((offset, checked.header)), written_to });
            }
            offset += FRAME_ALIGN;
            if is_written {
                written_to = offset;
            }
        }
        Ok(Search { found: None, written_to })
    }

    /// Whether a whole good frame lies at `offset`.
    pub(crate) fn is_whole(&mut self, offset: u64) -> Result<bool, LogError> {
        Ok(!matches!(self.read_frame(offset)?, Scanned::End(_)))
    }

    fn read_frame(&mut self, offset: u64) -> Result<Scanned, LogError> {
        let end = |reason| Ok(Scanned::End(End { offset, reason }));
        let checked = match self.header_at(offset)? {
            Ok(checked) => checked,
            Err(None) => return end(EndReason::Exhausted),
            Err(Some(NotAHeader::Zeros)) => return end(EndReason::Zeros),
            Err(Some(NotAHeader::Bad)) => return end(EndReason::BadHeader),
            Err(Some(NotAHeader::Newer { version, kind })) => {
                let what = format!("frame version {version}, kind {kind}");
                return Err(LogError::NewerFormat { file: self.name().file(), what });
            }
        };
        let header = checked.header;
        let padded_len = header.frame_bytes() - FRAME_HEADER_BYTES as u64;
        let seed = self.seed.clone();
        let payload_at = offset + FRAME_HEADER_BYTES as u64;
        match self.bytes_at(payload_at, padded_len)? {
            Some(padded) if checked.accepts(&seed, offset, padded) => Ok(match header.kind {
                FrameKind::Entry => {
                    Scanned::Entry(Frame { header, payload: padded[..header.payload_len as usize].to_vec() })
                }
                FrameKind::Mark => Scanned::Mark(header),
            }),
            _ => end(EndReason::BadPayload(header)),
        }
    }

    /// The header at `offset`; `Err(None)` at the end of the file.
    fn header_at(&mut self, offset: u64) -> Result<Result<CheckedHeader, Option<NotAHeader>>, LogError> {
        let (seed, len) = (self.seed.clone(), self.len);
        let Some(bytes) = self.bytes_at(offset, FRAME_HEADER_BYTES as u64)? else { return Ok(Err(None)) };
        let bytes = bytes.first_chunk().expect("bytes_at gives as many as were asked for");
        Ok(decode_header(bytes, &seed, offset, len).map_err(Some))
    }

    /// A first glance that spares the search nearly every checksum.
    fn may_be_header_at(&mut self, offset: u64) -> Result<bool, LogError> {
        let bytes = self.bytes_at(offset, FRAME_HEADER_BYTES as u64)?;
        Ok(bytes.and_then(<[u8]>::first_chunk).is_some_and(may_be_header))
    }

    /// Bytes of the file through the buffer; `None` if it ends before. Never allocates more than the file is long.
    fn bytes_at(&mut self, offset: u64, len: u64) -> Result<Option<&[u8]>, LogError> {
        let Some(end) = offset.checked_add(len).filter(|&end| end <= self.len) else { return Ok(None) };
        let buffered = self.buf_at..=self.buf_at + self.buf.len() as u64;
        if !(buffered.contains(&offset) && buffered.contains(&end)) {
            self.fill(offset, len)?;
        }
        let start = index(offset - self.buf_at);
        Ok(self.buf.get(start..start + index(len)))
    }

    /// Reads at least `len` bytes from `offset` on, unless the file has become shorter than it was.
    fn fill(&mut self, offset: u64, len: u64) -> Result<(), LogError> {
        let wanted = len.max(READ_CHUNK_BYTES as u64).min(self.len - offset);
        self.buf_at = offset;
        self.buf.clear();
        self.buf.resize(index(wanted), 0);
        let mut filled = 0;
        while filled < self.buf.len() {
            match self.file.read_at(offset + filled as u64, &mut self.buf[filled..]) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => {
                    // Half of a buffer must not look like content to the next call.
                    self.buf.clear();
                    return Err(LogError::Io { file: self.header.name.file(), source });
                }
            }
        }
        self.buf.truncate(filled);
        Ok(())
    }
}
