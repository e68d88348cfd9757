//! How a flow ends: what it held goes back, and what is known is concluded.

use std::time::Duration;

use super::super::attempt::Attempt;
use super::super::decide::StopReason;
use super::super::identity::Identity;
use super::super::knowledge::Stop;
use super::super::limits::Stage;
use super::super::observer::Event;
use super::super::outcome::{Ending, Phase, Report};
use super::super::verdict::{Kind, Verdict};
use super::Flow;
use super::state::State;

impl Flow {
    /// Ends it here. What may have been done stays uncertain.
    pub fn cancel(&mut self, now: Duration) {
        match std::mem::replace(&mut self.state, State::Moving) {
            State::Ended(ending, at) => self.state = State::Ended(ending, at),
            State::InFlight { first, hedge } => {
                for sent in [first, hedge.map(|sent| *sent)].into_iter().flatten() {
                    let verdict = self.cancelled_attempt(&sent.attempt);
                    self.knowledge.learn(self.spec.class, &verdict, sent.attempt.number());
                    self.close(sent, now, 0, Some(verdict), false, 0);
                }
                self.stop(Stop::new(StopReason::Cancelled, Phase::Attempt), now);
            }
            State::Admission { .. }
            | State::Breaker { .. }
            | State::Queued { .. }
            | State::Backoff { .. }
            | State::Moving => self.stop(Stop::new(StopReason::Cancelled, Phase::Attempt), now),
        }
    }

    fn cancelled_attempt(&self, attempt: &Attempt) -> Verdict {
        match attempt.stage() {
            Stage::Connecting => Verdict::not_sent(Kind::Cancelled),
            Stage::Unmarked | Stage::Sending | Stage::Receiving => Verdict::maybe_applied(Kind::Cancelled),
        }
    }

    /// Breaker or pool do not let an attempt in.
    pub(super) fn shut_out(&mut self, reason: StopReason, retry_after: Option<Duration>, now: Duration) {
        if self.tries > 0 {
            self.observe(|labels| Event::RetrySuppressed { labels, reason });
        }
        self.stop(Stop { retry_after, ..Stop::new(reason, Phase::Breaker) }, now);
    }

    pub(super) fn stop(&mut self, stop: Stop, now: Duration) {
        self.finish(self.knowledge.conclude(stop), now);
    }

    pub(super) fn finish(&mut self, ending: Ending, now: Duration) {
        // Losers of a hedge: their places and probes go back before anybody hears of the end.
        if let State::InFlight { first, hedge } = std::mem::replace(&mut self.state, State::Moving) {
            for sent in [first, hedge.map(|sent| *sent)].into_iter().flatten() {
                self.close(sent, now, 0, Some(Verdict::not_applied(Kind::Cancelled)), false, 0);
            }
        }
        self.state = State::Ended(ending, now);
        if self.core.observers.is_empty() {
            return;
        }
        // The identity is lent to the report, not cloned.
        let report = self.take_report(now);
        let degraded = self.spec.fallback && ending.allows_fallback();
        self.observe(|labels| Event::OperationFinished { labels, ending: &ending, report: &report, degraded });
        self.spec.identity = report.identity;
    }

    pub(super) fn report(&self, now: Duration) -> Report {
        self.report_with(self.spec.identity.clone(), now)
    }

    /// The report of a flow that nobody asks for anything any more.
    pub(crate) fn take_report(&mut self, now: Duration) -> Report {
        let identity = self.spec.identity.take();
        self.report_with(identity, now)
    }

    fn report_with(&self, identity: Option<Identity>, now: Duration) -> Report {
        Report {
            attempts: self.attempts,
            identity,
            duration: now.saturating_sub(self.started),
            waited_for_breaker: self.waited.breaker,
            waited_for_pool: self.waited.pool,
            waited_between: self.waited.between,
            cost: self.cost,
            trace: self.trace,
        }
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        if !matches!(self.state, State::Ended(..)) {
            // Whoever drops it hears no outcome; those who watch do.
            let now = self.core.clock.monotonic();
            self.cancel(now);
        }
    }
}
