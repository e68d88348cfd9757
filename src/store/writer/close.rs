//! The end of the writer.

use std::collections::HashSet;
use std::time::Duration;

use crate::base::error::Error;
use crate::log::record::Body;
use crate::store::folder::{Folded, Task};
use crate::store::segments::NextSegment;
use crate::store::shared::Shared;

use super::{Control, FolderLink, IDLE_MARK_AFTER, Writer};

impl Writer {
    /// Ends the opening: proves the last batch, closes the log, folds everything as a checkpoint. Everything that was
    /// answered is durable whatever fails here.
    pub(in crate::store) fn close(&mut self, mut wait_for_folder: impl FnMut(&mut Self)) -> Result<(), Error> {
        if self.shared.poison.get().is_none()
            && let Some(activity) = self.shared.activity.take()
            && let Err(error) = self.commit_own(vec![Body::Activity(activity)])
        {
            tracing::debug!(%error, "replays and conflicts of single keys were not written down");
        }
        self.shared.publisher.end();
        let time = self.frame_time();
        let unused = self.next_segment.take().and_then(NextSegment::finish);
        let log = self.log.take();
        if let Some(stopped) = self.shared.poison.get() {
            return Err(Error::Poisoned(stopped.cause.clone()));
        }
        let closed = log.map_or(Ok(()), |log| log.close(unused, time.0));
        wait_for_folder(self);
        let published = self.shared.publisher.load();
        if published.view.frozen.is_none() && self.shared.poison.get().is_none() {
            let fold = self.fold_of(published.view.active.clone(), published.position);
            self.send(Task::Finish(fold));
            while self.run_manual_task() {}
        }
        closed.map_err(|error| Error::Poisoned(format!("the log could not be closed: {error}")))?;
        self.shared.poison.get().map_or(Ok(()), |stopped| Err(Error::Poisoned(stopped.cause.clone())))
    }

    /// What the folder said after the writer had ended, which is at most that the last checkpoint failed.
    pub(in crate::store) fn note_last_words(shared: &Shared) {
        for control in shared.queue.take_control(Duration::ZERO) {
            if let Control::Folded(Folded::Failed(cause)) = control {
                shared.stop(format!("the state file: {cause}"), HashSet::new());
            }
        }
    }

    /// Takes the messages of a folder that is still at work.
    pub(in crate::store) fn drain_folder(&mut self) {
        while self.shared.publisher.load().view.frozen.is_some() && self.shared.poison.get().is_none() {
            if matches!(self.folder, FolderLink::Manual { .. }) {
                if !self.run_manual_task() {
                    return;
                }
            } else {
                let messages = self.shared.queue.take_control(IDLE_MARK_AFTER);
                messages.into_iter().for_each(|control| self.take_control(control));
            }
        }
    }
}
