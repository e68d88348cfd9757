//! A copy of a file that copies only what is written to it: what redb's own check runs on, since it repairs what it
//! finds.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::sync::Arc;

use parking_lot::Mutex;

use super::DiskFile;

const PAGE_BYTES: u64 = 4096;

/// A redb backend that reads a file and keeps every write in memory. The file is never changed.
///
/// Nobody else may write to the file meanwhile.
#[derive(Debug)]
pub(crate) struct CopyOnWrite {
    file: Arc<dyn DiskFile>,
    file_len: u64,
    copy: Mutex<Copy>,
}

#[derive(Debug)]
struct Copy {
    len: u64,
    /// Pages that were written, by number.
    pages: BTreeMap<u64, Vec<u8>>,
}

impl CopyOnWrite {
    pub(crate) fn new(file: Arc<dyn DiskFile>) -> io::Result<Self> {
        let file_len = file.len()?;
        Ok(Self { file, file_len, copy: Mutex::new(Copy { len: file_len, pages: BTreeMap::new() }) })
    }

    /// A page as it is in the file; zeros behind its end.
    fn original(&self, page: u64) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(PAGE_BYTES).expect("4096 fits")];
        self.read_original(page * PAGE_BYTES, &mut bytes)?;
        Ok(bytes)
    }

    /// Bytes of the file; zeros behind its end.
    fn read_original(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let there = usize::try_from(self.file_len.saturating_sub(offset)).unwrap_or(usize::MAX).min(out.len());
        let (there, behind) = out.split_at_mut(there);
        behind.fill(0);
        self.file.read_exact_at(offset, there)
    }

    /// Calls `each` with page number, range within the page, and range within the buffer.
    fn pages(
        offset: u64,
        len: usize,
        mut each: impl FnMut(u64, std::ops::Range<usize>, std::ops::Range<usize>) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut done = 0;
        while done < len {
            let at = offset + done as u64;
            let within = usize::try_from(at % PAGE_BYTES).expect("below 4096");
            let part = (len - done).min(usize::try_from(PAGE_BYTES).expect("4096 fits") - within);
            each(at / PAGE_BYTES, within..within + part, done..done + part)?;
            done += part;
        }
        Ok(())
    }
}

impl redb::StorageBackend for CopyOnWrite {
    fn len(&self) -> io::Result<u64> {
        Ok(self.copy.lock().len)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let copy = self.copy.lock();
        if offset.saturating_add(out.len() as u64) > copy.len {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Self::pages(offset, out.len(), |page, within, buffer| {
            match copy.pages.get(&page) {
                Some(bytes) => out[buffer].copy_from_slice(&bytes[within]),
                None => self.read_original(page * PAGE_BYTES + within.start as u64, &mut out[buffer])?,
            }
            Ok(())
        })
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut copy = self.copy.lock();
        if len < copy.len {
            // What is cut off reads as zeros if the file grows again.
            let first = len / PAGE_BYTES;
            let mut page = match copy.pages.remove(&first) {
                Some(bytes) => bytes,
                None => self.original(first)?,
            };
            page[usize::try_from(len % PAGE_BYTES).expect("below 4096")..].fill(0);
            copy.pages.insert(first, page);
            let zero = vec![0; usize::try_from(PAGE_BYTES).expect("4096 fits")];
            for page in first + 1..copy.len.div_ceil(PAGE_BYTES) {
                copy.pages.insert(page, zero.clone());
            }
        }
        copy.len = len;
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut copy = self.copy.lock();
        copy.len = copy.len.max(offset.saturating_add(data.len() as u64));
        Self::pages(offset, data.len(), |page, within, buffer| {
            let bytes = match copy.pages.entry(page) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(entry) => entry.insert(self.original(page)?),
            };
            bytes[within].copy_from_slice(&data[buffer]);
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use redb::StorageBackend;

    use super::*;
    use crate::disk::sim::SimDisk;
    use crate::disk::{Disk, OpenMode};

    #[test]
    fn writes_show_in_the_copy_and_never_in_the_file() {
        let disk = SimDisk::new();
        let original: Vec<u8> = (0..10_000_u32).map(|i| (i % 251) as u8).collect();
        disk.write_file("f", original.clone());
        let copy = CopyOnWrite::new(disk.open("f", OpenMode::Read).unwrap()).unwrap();
        copy.write(4_090, &[7; 20]).unwrap();
        copy.write(12_000, &[9; 3]).unwrap();
        let mut read = vec![0; 12_003];
        copy.read(0, &mut read).unwrap();
        let mut expected = original.clone();
        expected[4_090..4_110].fill(7);
        expected.resize(12_003, 0);
        expected[12_000..].fill(9);
        assert_eq!(read, expected);
        assert_eq!(disk.read_file("f").unwrap(), original);
        assert!(copy.read(12_000, &mut [0; 4]).is_err(), "behind the end");
    }

    #[test]
    fn what_was_cut_off_reads_as_zeros_after_growing_again() {
        let disk = SimDisk::new();
        disk.write_file("f", vec![5; 9_000]);
        let copy = CopyOnWrite::new(disk.open("f", OpenMode::Read).unwrap()).unwrap();
        copy.set_len(100).unwrap();
        copy.set_len(9_000).unwrap();
        let mut read = vec![1; 9_000];
        copy.read(0, &mut read).unwrap();
        assert!(read[..100].iter().all(|byte| *byte == 5) && read[100..].iter().all(|byte| *byte == 0));
    }
}
