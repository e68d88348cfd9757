//! Admission: what one submission is answered, given what is stored under its slot. The one function that every entry
//! point uses.

use std::time::Duration;

use crate::base::operation::LeaseEnd;
use crate::base::position::TimestampMs;

use super::identity::Digest;
use super::minted::KeyAge;
use super::retention::{Phase, phase};

/// The shortest and the longest wait that a caller is asked for while a claim is in progress. The bound keeps a caller
/// from sleeping through the whole of a long lease.
const RETRY_AFTER_MIN: Duration = Duration::from_millis(10);
const RETRY_AFTER_MAX: Duration = Duration::from_secs(5);

/// What a replay guard answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// This caller may see the result now.
    Allowed,
    /// It may not, and is not told whether there is one.
    Denied,
}

/// What is stored under a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stored<'a> {
    Nothing,
    /// An operation that finished. Past `replay_until` it is the tombstone, past `refuse_until` it is nothing.
    Receipt {
        digest: &'a Digest,
        operation_version: u32,
        replay_until: TimestampMs,
        refuse_until: TimestampMs,
        /// The reply was erased: the operation is answered as gone at once.
        reply_erased: bool,
    },
    /// A claim whose holder has not finished.
    Claim {
        digest: &'a Digest,
        operation_version: u32,
        lease_until: TimestampMs,
    },
}

/// What a submission brings: its digest under every version that its operation type accepts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Submission<'a> {
    pub(crate) digests: &'a [(u32, Digest)],
    pub(crate) lease_end: LeaseEnd,
    /// What the key says of its own age.
    pub(crate) key_age: KeyAge,
}

/// The answer of [`admit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    Execute,
    Replay,
    Gone,
    /// With the stored version, if that is the reason.
    Conflict {
        stored_version: Option<u32>,
    },
    InProgress {
        retry_after: Duration,
    },
    NeedsReconciliation,
    Expired,
    FromTheFuture,
    Denied,
}

/// Decides one submission.
///
/// The guard's answer comes first, before digests are compared, so that a caller without access learns nothing, not
/// even whether a receipt exists.
pub(crate) fn admit(access: Access, stored: Stored<'_>, submission: &Submission<'_>, now: TimestampMs) -> Admission {
    if access == Access::Denied {
        return Admission::Denied;
    }
    match stored {
        Stored::Nothing => admit_new(submission),
        Stored::Receipt { digest, operation_version, replay_until, refuse_until, reply_erased } => {
            match phase(now, replay_until, refuse_until) {
                Phase::Forgotten => admit_new(submission),
                Phase::Replay | Phase::Refuse if !same(digest, operation_version, submission) => {
                    conflict(operation_version, submission)
                }
                Phase::Replay if !reply_erased => Admission::Replay,
                Phase::Replay | Phase::Refuse => Admission::Gone,
            }
        }
        Stored::Claim { digest, operation_version, .. } if !same(digest, operation_version, submission) => {
            conflict(operation_version, submission)
        }
        Stored::Claim { lease_until, .. } if now < lease_until => {
            Admission::InProgress { retry_after: retry_after(lease_until, now) }
        }
        Stored::Claim { .. } => match submission.lease_end {
            LeaseEnd::Reconcile => Admission::NeedsReconciliation,
            LeaseEnd::Execute => Admission::Execute,
        },
    }
}

/// The answer of [`look_up`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LookUp {
    Nothing,
    Replay,
    Gone,
    InProgress { retry_after: Duration },
    NeedsReconciliation,
    Denied,
}

/// What is known of a slot to somebody who only asks and brings no request to compare.
pub(crate) fn look_up(access: Access, stored: Stored<'_>, now: TimestampMs) -> LookUp {
    if access == Access::Denied {
        return LookUp::Denied;
    }
    match stored {
        Stored::Nothing => LookUp::Nothing,
        Stored::Receipt { replay_until, refuse_until, reply_erased, .. } => {
            match phase(now, replay_until, refuse_until) {
                Phase::Forgotten => LookUp::Nothing,
                Phase::Replay if !reply_erased => LookUp::Replay,
                Phase::Replay | Phase::Refuse => LookUp::Gone,
            }
        }
        Stored::Claim { lease_until, .. } if now < lease_until => {
            LookUp::InProgress { retry_after: retry_after(lease_until, now) }
        }
        Stored::Claim { .. } => LookUp::NeedsReconciliation,
    }
}

fn retry_after(lease_until: TimestampMs, now: TimestampMs) -> Duration {
    lease_until.since(now).clamp(RETRY_AFTER_MIN, RETRY_AFTER_MAX)
}

const fn admit_new(submission: &Submission<'_>) -> Admission {
    match submission.key_age {
        KeyAge::Good => Admission::Execute,
        KeyAge::Expired => Admission::Expired,
        KeyAge::Future => Admission::FromTheFuture,
    }
}

/// The submission is the stored operation: its digest, computed under the stored version, is the stored one.
fn same(stored: &Digest, stored_version: u32, submission: &Submission<'_>) -> bool {
    submission.digests.iter().any(|(version, digest)| *version == stored_version && digest == stored)
}

fn conflict(stored_version: u32, submission: &Submission<'_>) -> Admission {
    let accepted = submission.digests.iter().any(|(version, _)| *version == stored_version);
    Admission::Conflict { stored_version: (!accepted).then_some(stored_version) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAME: Digest = Digest([1; 32]);
    const OTHER: Digest = Digest([2; 32]);
    const NOW: TimestampMs = TimestampMs(1_000);

    const fn receipt(digest: &Digest, version: u32, replay_until: u64, refuse_until: u64) -> Stored<'_> {
        Stored::Receipt {
            digest,
            operation_version: version,
            replay_until: TimestampMs(replay_until),
            refuse_until: TimestampMs(refuse_until),
            reply_erased: false,
        }
    }

    const fn claim(digest: &Digest, lease_until: u64) -> Stored<'_> {
        Stored::Claim { digest, operation_version: 1, lease_until: TimestampMs(lease_until) }
    }

    fn ask(stored: Stored<'_>, lease_end: LeaseEnd, key_age: KeyAge) -> Admission {
        let digests = [(1, SAME)];
        admit(Access::Allowed, stored, &Submission { digests: &digests, lease_end, key_age }, NOW)
    }

    #[test]
    fn every_row_of_the_admission_table_is_answered() {
        let plain = Admission::Conflict { stored_version: None };
        let wait = |ms| Admission::InProgress { retry_after: Duration::from_millis(ms) };
        let rows = [
            ("nothing", Stored::Nothing, Admission::Execute),
            ("receipt, same", receipt(&SAME, 1, 1_001, 2_000), Admission::Replay),
            ("receipt, other", receipt(&OTHER, 1, 1_001, 2_000), plain),
            ("receipt at its last millisecond", receipt(&SAME, 1, 1_001, 1_001), Admission::Replay),
            ("tombstone, exactly at the deadline", receipt(&SAME, 1, 1_000, 2_000), Admission::Gone),
            ("tombstone, other", receipt(&OTHER, 1, 1_000, 2_000), plain),
            ("forgotten, exactly at the deadline", receipt(&SAME, 1, 500, 1_000), Admission::Execute),
            ("forgotten, other", receipt(&OTHER, 1, 500, 1_000), Admission::Execute),
            ("claim in progress, same", claim(&SAME, 1_300), wait(300)),
            ("claim in progress, nearly over", claim(&SAME, 1_001), wait(10)),
            ("claim in progress, long lease", claim(&SAME, 9_000_000), wait(5_000)),
            ("claim ended, same", claim(&SAME, 1_000), Admission::NeedsReconciliation),
            ("claim in progress, other", claim(&OTHER, 1_300), plain),
            ("claim ended, other", claim(&OTHER, 1_000), plain),
        ];
        for (name, stored, expected) in rows {
            assert_eq!(ask(stored, LeaseEnd::Reconcile, KeyAge::Good), expected, "{name}");
        }
    }

    #[test]
    fn an_ended_claim_executes_where_the_operation_chose_so() {
        assert_eq!(ask(claim(&SAME, 1_000), LeaseEnd::Execute, KeyAge::Good), Admission::Execute);
    }

    #[test]
    fn a_key_older_than_the_horizon_never_executes_but_still_replays() {
        assert_eq!(ask(Stored::Nothing, LeaseEnd::Reconcile, KeyAge::Expired), Admission::Expired);
        assert_eq!(ask(receipt(&SAME, 1, 500, 1_000), LeaseEnd::Reconcile, KeyAge::Expired), Admission::Expired);
        assert_eq!(ask(receipt(&SAME, 1, 1_001, 2_000), LeaseEnd::Reconcile, KeyAge::Expired), Admission::Replay);
    }

    #[test]
    fn a_key_from_the_future_is_refused_where_nothing_is_stored_and_replays_what_is() {
        let ask = |stored| ask(stored, LeaseEnd::Reconcile, KeyAge::Future);
        assert_eq!(ask(Stored::Nothing), Admission::FromTheFuture);
        assert_eq!(ask(receipt(&SAME, 1, 500, 1_000)), Admission::FromTheFuture);
        assert_eq!(ask(receipt(&SAME, 1, 1_001, 2_000)), Admission::Replay);
    }

    #[test]
    fn an_erased_reply_is_gone_at_once_and_never_executed_again() {
        let stored = Stored::Receipt {
            digest: &SAME,
            operation_version: 1,
            replay_until: TimestampMs(5_000),
            refuse_until: TimestampMs(9_000),
            reply_erased: true,
        };
        assert_eq!(ask(stored, LeaseEnd::Execute, KeyAge::Good), Admission::Gone);
    }

    #[test]
    fn denied_is_one_answer_whatever_is_stored() {
        let digests = [(1, SAME)];
        let submission = Submission { digests: &digests, lease_end: LeaseEnd::Execute, key_age: KeyAge::Expired };
        for stored in [
            Stored::Nothing,
            receipt(&SAME, 1, 2_000, 3_000),
            receipt(&OTHER, 9, 2_000, 3_000),
            claim(&SAME, 2_000),
            claim(&OTHER, 500),
        ] {
            assert_eq!(admit(Access::Denied, stored, &submission, NOW), Admission::Denied);
        }
    }

    #[test]
    fn an_earlier_version_replays_while_it_is_accepted_and_else_is_a_conflict_that_names_it() {
        let stored = receipt(&SAME, 1, 2_000, 3_000);
        let accepted = [(2, OTHER), (1, SAME)];
        let alone = [(2, OTHER)];
        let ask = |digests: &[(u32, Digest)]| {
            let submission = Submission { digests, lease_end: LeaseEnd::Reconcile, key_age: KeyAge::Good };
            admit(Access::Allowed, stored, &submission, NOW)
        };
        assert_eq!(ask(&accepted), Admission::Replay);
        assert_eq!(ask(&alone), Admission::Conflict { stored_version: Some(1) });
    }
}
