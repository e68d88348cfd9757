//! The dependency: so many workers, and a queue. It works on what nobody waits for any more, because it does not know,
//! unless the request said how much time there was.

use std::collections::VecDeque;
use std::time::Duration;

/// What a request takes when all is well.
pub(crate) const SERVICE: Duration = Duration::from_millis(20);

/// One request as the dependency sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    pub(crate) operation: usize,
    pub(crate) attempt: u32,
    /// What the request said of the time that there is, as a moment of this side's clock.
    pub(crate) deadline: Option<Duration>,
    /// The connection had to be set up.
    pub(crate) cold: bool,
}

#[derive(Debug)]
pub(crate) struct Server {
    free: u32,
    queue: VecDeque<Job>,
    queue_max: usize,
}

impl Server {
    /// Serves `capacity` requests a second when it is well.
    pub(crate) fn new(capacity: u32) -> Self {
        let workers = (capacity * u32::try_from(SERVICE.as_millis()).expect("small") / 1000).max(1);
        // Twenty seconds of work: what kernels, proxies and accept queues hold together, and nobody sees.
        Self { free: workers, queue: VecDeque::new(), queue_max: capacity as usize * 20 }
    }

    /// `false`: even the queue is full.
    pub(crate) fn take(&mut self, job: Job) -> bool {
        let room = self.queue.len() < self.queue_max;
        if room {
            self.queue.push_back(job);
        }
        room
    }

    /// The next request to work on, if a worker is free. Those whose time is up are let go without work.
    pub(crate) fn next(&mut self, now: Duration) -> Option<Job> {
        if self.free == 0 {
            return None;
        }
        let useful = |job: &Job| job.deadline.is_none_or(|deadline| deadline > now);
        let job = std::iter::from_fn(|| self.queue.pop_front()).find(useful)?;
        self.free -= 1;
        Some(job)
    }

    pub(crate) fn done(&mut self) {
        self.free += 1;
    }

    /// It is stopped: what waited is gone.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Job> + '_ {
        self.queue.drain(..)
    }
}
