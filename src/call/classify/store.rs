//! Errors of an embedded store that is called directly.

use crate::base::error::Error;

use super::super::verdict::{Kind, Verdict};

/// The verdict on an error of the store.
pub const fn error(error: &Error) -> Verdict {
    match error {
        Error::Conflict { .. } => Verdict::not_ours(),
        Error::Gone(_) => Verdict::applied(Kind::Permanent),
        Error::InProgress { retry_after } => Verdict::in_progress().after(*retry_after),
        Error::NeedsReconciliation => Verdict::maybe_applied(Kind::Permanent),
        Error::Unknown(_) => Verdict::maybe_applied(Kind::Transient),
        Error::Overloaded => Verdict::not_applied(Kind::Overloaded),
        Error::DeadlineExceeded => Verdict::not_applied(Kind::Timeout),
        Error::Cancelled => Verdict::not_applied(Kind::Cancelled),
        Error::Failed(_) | Error::DiskFull(_) | Error::Segment(_) | Error::Closed | Error::Poisoned(_) => {
            Verdict::not_applied(Kind::Transient)
        }
        // Retries inside one deadline would not outlast the retention that makes room again.
        Error::QuotaExceeded { .. }
        | Error::Expired { .. }
        | Error::FromTheFuture { .. }
        | Error::Denied
        | Error::Panicked { .. }
        | Error::Table(_)
        | Error::Intent(_)
        | Error::LeaseLost
        | Error::Limit { .. }
        | Error::Invalid(_)
        | Error::Undeclared { .. }
        | Error::Reentrant
        | Error::Corrupt(_) => Verdict::not_applied(Kind::Permanent),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::super::verdict::EffectState;
    use super::*;
    use crate::base::error::Execution;

    #[test]
    fn the_verdict_says_of_the_effect_what_the_error_says() {
        let retry_after = Duration::from_secs(1);
        for error in [
            Error::Conflict { stored_version: None },
            Error::InProgress { retry_after },
            Error::NeedsReconciliation,
            Error::Unknown("synced?".to_owned()),
            Error::Overloaded,
            Error::DeadlineExceeded,
            Error::Cancelled,
            Error::Poisoned("disk".to_owned()),
            Error::Denied,
            Error::Closed,
        ] {
            let verdict = super::error(&error);
            match (error.execution(), verdict.effect) {
                (Execution::NotExecuted, EffectState::NotApplied) | (Execution::Unknown, EffectState::MaybeApplied) => {
                }
                // This submission did nothing, and another one is at work.
                (Execution::NotExecuted, EffectState::MaybeApplied) if verdict.kind == Kind::InProgress => {}
                other => panic!("{error}: {other:?}"),
            }
        }
    }
}
