//! The floor: nothing durable is faster than appending the bytes to a file that is already there and syncing it.

use std::fs::File;
use std::path::Path;

use crate::failure::{During as _, Outcome};
use crate::peer::Commit;
use crate::workload::Op;

/// As this store's largest segments. At its end, writing begins again at the front.
const FILE_BYTES: u64 = 32 * 1024 * 1024;
const ZEROS_BYTES: usize = 1024 * 1024;

/// A preallocated file.
pub(crate) struct Floor {
    file: File,
    frame_bytes: usize,
    scratch: Vec<u8>,
    offset: u64,
    orders: u64,
}

impl Floor {
    /// `frame_bytes` is what this store appends for one operation.
    pub(crate) fn open(directory: &Path, frame_bytes: usize) -> Outcome<Self> {
        let file = File::create_new(directory.join("floor.log")).during("making the floor's file")?;
        // Real zeros: an extent that was never written costs a commit of metadata when it first is.
        let zeros = vec![0; ZEROS_BYTES];
        let mut at = 0;
        while at < FILE_BYTES {
            write_at(&file, &zeros, at).during("filling the floor's file with zeros")?;
            at += zeros.len() as u64;
        }
        file.sync_all().during("syncing the floor's file")?;
        Ok(Self { file, frame_bytes, scratch: Vec::new(), offset: 0, orders: 0 })
    }
}

impl Commit for Floor {
    fn commit(&mut self, ops: &[Op]) -> Outcome<()> {
        self.scratch.clear();
        for op in ops {
            let end = self.scratch.len() + self.frame_bytes;
            self.scratch.extend_from_slice(&op.key);
            self.scratch.extend_from_slice(&op.order);
            self.scratch.extend_from_slice(&op.reply);
            self.scratch.resize(end, 0x44);
        }
        let bytes = self.scratch.len() as u64;
        if self.offset + bytes > FILE_BYTES {
            self.offset = 0;
        }
        write_at(&self.file, &self.scratch, self.offset).during("appending to the floor's file")?;
        self.file.sync_data().during("syncing the floor's file")?;
        self.offset += bytes;
        self.orders += ops.len() as u64;
        Ok(())
    }

    fn orders(&mut self) -> Outcome<u64> {
        Ok(self.orders)
    }
}

#[cfg(unix)]
fn write_at(file: &File, bytes: &[u8], offset: u64) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, offset)
}

#[cfg(windows)]
fn write_at(mut file: &File, bytes: &[u8], offset: u64) -> std::io::Result<()> {
    use std::io::{Seek as _, SeekFrom, Write as _};
    file.seek(SeekFrom::Start(offset))?;
    file.write_all(bytes)
}
