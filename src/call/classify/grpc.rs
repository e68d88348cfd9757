//! gRPC's codes. They prove little: a server that is killed in the middle of a call shows as `Unknown`, `Cancelled`,
//! `Unavailable` or `Internal`, and tonic's own timeout as `Cancelled`.

use super::super::verdict::{Hint, Kind, Verdict};
use super::Contract;

/// The verdict on a code, by its number. `None`: it is an answer (0).
#[must_use]
pub fn code(code: i32, hint: Hint, contract: Contract) -> Option<Verdict> {
    let unavailable = |kind| {
        if contract.unavailable_is_not_executed { Verdict::not_applied(kind) } else { Verdict::maybe_applied(kind) }
    };
    let verdict = match code {
        0 => return None,
        // Cancelled, by whoever: tonic's timeouts are among them. DeadlineExceeded.
        1 | 4 => Verdict::maybe_applied(Kind::Timeout),
        // InvalidArgument, NotFound, PermissionDenied, FailedPrecondition, Unimplemented, Unauthenticated.
        3 | 5 | 7 | 9 | 12 | 16 => Verdict::not_applied(Kind::Permanent),
        // AlreadyExists. Whose it is that exists, the code does not say.
        6 => Verdict::not_applied(Kind::Conflict),
        // ResourceExhausted: who says when to come again wants one to come.
        8 if hint == Hint::None => unavailable(Kind::Overloaded),
        8 => unavailable(Kind::Throttled),
        // OutOfRange: among others an answer that this side found too long. DataLoss.
        11 | 15 => Verdict::maybe_applied(Kind::Permanent),
        // Unavailable.
        14 => unavailable(Kind::Transient),
        // Unknown, Aborted, Internal, and what there is not.
        _ => Verdict::maybe_applied(Kind::Transient),
    };
    Some(verdict.hint(hint))
}

#[cfg(feature = "grpc")]
pub use with_tonic::status;

#[cfg(feature = "grpc")]
mod with_tonic {
    use std::error::Error;
    use std::io;

    use tonic::{ConnectError, Status, TimeoutExpired};

    use super::*;
    use crate::call::propagate::grpc::{PUSHBACK, read_pushback};

    /// The verdict on a status, never on its message: what is behind it is looked for among its sources.
    #[must_use]
    pub fn status(status: &Status, contract: Contract) -> Option<Verdict> {
        let mut pushbacks = status.metadata().get_all(PUSHBACK).iter();
        let hint = match (pushbacks.next(), pushbacks.next()) {
            (None, _) => Hint::None,
            (Some(text), None) => text.to_str().map_or(Hint::Never, read_pushback),
            // Unreadable.
            (Some(_), Some(_)) => Hint::Never,
        };
        let mut source = status.source();
        while let Some(error) = source {
            if let Some(proven) = proven(error) {
                return Some(proven.hint(hint));
            }
            // An I/O error's own source skips the error that it was made of.
            source = match error.downcast_ref::<io::Error>() {
                Some(io) => io.get_ref().map(|inner| inner as &(dyn Error + 'static)),
                None => error.source(),
            };
        }
        code(i32::from(status.code()), hint, contract)
    }

    /// What a source proves.
    fn proven(error: &(dyn Error + 'static)) -> Option<Verdict> {
        if error.is::<ConnectError>() {
            return Some(Verdict::not_sent(Kind::Transient));
        }
        if error.is::<TimeoutExpired>() {
            return Some(Verdict::maybe_applied(Kind::Timeout));
        }
        if let Some(error) = error.downcast_ref::<h2::Error>()
            && error.reason() == Some(h2::Reason::REFUSED_STREAM)
        {
            // The one reason that promises that nothing was done (RFC 9113, section 8.7).
            return Some(Verdict::not_applied(Kind::Transient));
        }
        let refused = error.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::ConnectionRefused);
        refused.then(|| Verdict::not_sent(Kind::Transient))
    }

    #[cfg(test)]
    mod tests {
        use std::sync::Arc;

        use tonic::Code;
        use tonic::metadata::MetadataValue;

        use super::*;

        fn caused(code: Code, cause: impl Error + Send + Sync + 'static) -> Verdict {
            let mut status = Status::new(code, "text that nobody reads");
            status.set_source(Arc::new(cause));
            super::status(&status, Contract::NONE).unwrap()
        }

        #[test]
        fn unavailable_alone_does_not_prove_that_nothing_was_done() {
            let status = Status::unavailable("connection refused");
            assert_eq!(super::status(&status, Contract::NONE), Some(Verdict::maybe_applied(Kind::Transient)));
        }

        #[test]
        fn a_refused_connection_and_a_refused_stream_among_its_sources_do() {
            let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
            assert_eq!(caused(Code::Unavailable, refused), Verdict::not_sent(Kind::Transient));
            let stream = h2::Error::from(h2::Reason::REFUSED_STREAM);
            assert_eq!(caused(Code::Unavailable, stream), Verdict::not_applied(Kind::Transient));
            let cancelled = h2::Error::from(h2::Reason::CANCEL);
            assert_eq!(caused(Code::Cancelled, cancelled), Verdict::maybe_applied(Kind::Timeout));
        }

        #[test]
        fn a_source_is_found_however_deep_it_is() {
            let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
            let wrapped = io::Error::other(io::Error::other(refused));
            assert_eq!(caused(Code::Unknown, wrapped), Verdict::not_sent(Kind::Transient));
        }

        #[test]
        fn tonics_own_timeout_is_a_timeout_though_it_is_called_cancelled() {
            assert_eq!(caused(Code::Cancelled, TimeoutExpired(())), Verdict::maybe_applied(Kind::Timeout));
        }

        #[test]
        fn pushback_is_obeyed_and_an_unreadable_one_means_never() {
            for (text, hint) in [
                ("1500", Hint::After(std::time::Duration::from_millis(1500))),
                ("-1", Hint::Never),
                ("soon", Hint::Never),
            ] {
                let mut status = Status::unavailable("");
                status.metadata_mut().insert(PUSHBACK, MetadataValue::from_static(text));
                assert_eq!(super::status(&status, Contract::NONE).unwrap().hint, hint, "{text}");
                status.metadata_mut().append(PUSHBACK, MetadataValue::from_static("5"));
                assert_eq!(super::status(&status, Contract::NONE).unwrap().hint, Hint::Never, "twice");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::verdict::EffectState;
    use super::*;

    #[test]
    fn a_server_that_is_killed_may_have_done_it_whatever_code_shows() {
        for number in [1, 2, 13, 14] {
            assert_eq!(code(number, Hint::None, Contract::NONE).unwrap().effect, EffectState::MaybeApplied, "{number}");
        }
        assert_eq!(code(0, Hint::None, Contract::NONE), None);
        assert_eq!(code(99, Hint::None, Contract::NONE), Some(Verdict::maybe_applied(Kind::Transient)));
    }

    #[test]
    fn refusals_did_nothing() {
        for number in [3, 5, 7, 9, 12, 16] {
            assert_eq!(code(number, Hint::None, Contract::NONE), Some(Verdict::not_applied(Kind::Permanent)));
        }
        assert_eq!(code(6, Hint::None, Contract::NONE), Some(Verdict::not_applied(Kind::Conflict)));
    }

    #[test]
    fn a_service_that_promises_it_refuses_before_it_does_anything() {
        assert_eq!(code(8, Hint::None, Contract::NONE), Some(Verdict::maybe_applied(Kind::Overloaded)));
        assert_eq!(code(8, Hint::None, Contract::RECEIPTS), Some(Verdict::not_applied(Kind::Overloaded)));
        assert_eq!(code(14, Hint::None, Contract::RECEIPTS), Some(Verdict::not_applied(Kind::Transient)));
    }
}
