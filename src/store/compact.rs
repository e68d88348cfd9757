//! Giving the disk back what the state file does not need any more.

use crate::base::error::Error;
use crate::base::sync::mpsc;

use super::Store;
use super::folder::CompactNews;
use super::reentry;
use super::writer::Control;

/// What [`Store::compact`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compacted {
    /// Bytes of the state file before.
    pub bytes_before: u64,
    /// Bytes of the state file after.
    pub bytes_after: u64,
}

impl Store {
    /// Rewrites the state file, so that it holds what is living and little more; `progress` is told how many rows of how
    /// many are copied.
    ///
    /// A store under steady load does not need this: pages that sweeping frees are used again, and the file reaches a
    /// plateau. It is worth it after much was deleted at once (a tenant left, retention was shortened), and it is how
    /// erased content leaves the file ([`Store::purge`]).
    ///
    /// Operations go on meanwhile, and so do open views, which keep the old file until they are dropped. It takes room on
    /// the disk for a second file, and memory for what is folded while it runs, at most some 32 MiB. A crash at any moment
    /// leaves the old file or the new one, each whole.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] with the reason if it could not be done: the old file is as it was, and it may be tried again.
    /// [`Error::Poisoned`] if the store stopped, which it does if the new file's name could not be made durable.
    pub fn compact(&self, mut progress: impl FnMut(u64, u64)) -> Result<Compacted, Error> {
        let shared = self.shared();
        if reentry::inside(shared.number) {
            return Err(Error::Reentrant);
        }
        let (sender, news) = mpsc::channel();
        shared.queue.push_control(Control::Compact(sender));
        loop {
            let next = if self.run.is_manual() {
                match news.try_recv() {
                    Ok(next) => Ok(next),
                    Err(mpsc::TryRecvError::Empty) => {
                        if self.run.step()? {
                            continue;
                        }
                        news.try_recv().map_err(drop)
                    }
                    Err(mpsc::TryRecvError::Disconnected) => Err(()),
                }
            } else {
                news.recv().map_err(drop)
            };
            match next {
                Ok(CompactNews::Progress { copied, total }) => progress(copied, total),
                Ok(CompactNews::Done(Ok((bytes_before, bytes_after)))) => {
                    return Ok(Compacted { bytes_before, bytes_after });
                }
                Ok(CompactNews::Done(Err(reason))) => {
                    let stopped = shared.poison.get().map(|stopped| Error::Poisoned(stopped.cause.clone()));
                    return Err(
                        stopped.unwrap_or(Error::Corrupt(format!("the state file was not compacted: {reason}")))
                    );
                }
                Err(()) => return Err(Error::Closed),
            }
        }
    }
}
