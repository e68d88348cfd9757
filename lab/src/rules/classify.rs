//! What an error proves, as a table.
//!
//! Almost nothing. A status code says what a library made of what it saw, and the same death of a server has been seen as
//! `Unknown`, `Cancelled`, `Unavailable` and `Internal`. In particular `Unavailable` does **not** prove that nothing was
//! executed. Only three things do, and each of them happened before the request left or was looked at: the connection was
//! refused, the stream was refused, or the server shed the load. Everything else is unknown.

use serde::{Deserialize, Serialize};

use crate::rules::{
    event::CallFailure,
    outcome::{Outcome, Refused, Unknown},
    word::words,
};

words! {
    /// A gRPC status code, by the name that is printed.
    pub enum Code, "status code" {
        /// Not an error. As an error it is a broken server's.
        Ok = "Ok",
        /// Also how this client reports its own timeout.
        Cancelled = "Cancelled",
        /// Also a connection that broke in the middle.
        Unknown = "Unknown",
        /// The request makes no sense.
        InvalidArgument = "InvalidArgument",
        /// Too late.
        DeadlineExceeded = "DeadlineExceeded",
        /// There is none.
        NotFound = "NotFound",
        /// There is one.
        AlreadyExists = "AlreadyExists",
        /// Not allowed.
        PermissionDenied = "PermissionDenied",
        /// Too much. Also said in the middle of something.
        ResourceExhausted = "ResourceExhausted",
        /// Not now.
        FailedPrecondition = "FailedPrecondition",
        /// Given up.
        Aborted = "Aborted",
        /// Too far.
        OutOfRange = "OutOfRange",
        /// No such call.
        Unimplemented = "Unimplemented",
        /// Also a stream that was reset.
        Internal = "Internal",
        /// Also a connection that broke after the request had left.
        Unavailable = "Unavailable",
        /// Something is gone.
        DataLoss = "DataLoss",
        /// Who are you?
        Unauthenticated = "Unauthenticated",
    }
}

words! {
    /// What the chain of causes shows, found by the types of its links and never by their text.
    pub enum Sign, "sign" {
        /// The remaining time was used up before anything was sent.
        NothingSent = "nothing-sent",
        /// There was no connection, and none came about.
        NotConnected = "not-connected",
        /// HTTP/2 REFUSED_STREAM: the server promises that it has not looked at the request.
        RefusedStream = "refused-stream",
        /// The server's own mark that it turned the request away before handling it.
        LoadShed = "load-shed",
        /// The own deadline passed while waiting.
        OwnDeadline = "own-deadline",
        /// Nothing of the kind.
        None = "none",
    }
}

/// A row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Proof {
    /// It was definitely not executed by this attempt.
    Definite,
    /// It may have been.
    Nothing,
}

/// What an error proves. The code is looked at last, and never proves anything alone.
pub const fn proof(_code: Code, sign: Sign) -> Proof {
    match sign {
        Sign::NothingSent | Sign::NotConnected | Sign::RefusedStream | Sign::LoadShed => Proof::Definite,
        Sign::OwnDeadline | Sign::None => Proof::Nothing,
    }
}

/// What a client makes of an error.
pub const fn outcome(code: Code, sign: Sign) -> Outcome {
    match (proof(code, sign), sign) {
        (Proof::Definite, Sign::RefusedStream | Sign::LoadShed) => Outcome::Refused(Refused::TurnedAway),
        (Proof::Definite, _) => Outcome::Refused(Refused::NotConnected),
        (Proof::Nothing, Sign::OwnDeadline) => Outcome::Unknown(Unknown::NoAnswer),
        (Proof::Nothing, _) => Outcome::Unknown(match code {
            Code::Cancelled | Code::DeadlineExceeded => Unknown::NoAnswer,
            Code::Unavailable | Code::Unknown | Code::Internal | Code::Aborted => Unknown::ConnectionLost,
            Code::Ok
            | Code::InvalidArgument
            | Code::NotFound
            | Code::AlreadyExists
            | Code::PermissionDenied
            | Code::ResourceExhausted
            | Code::FailedPrecondition
            | Code::OutOfRange
            | Code::Unimplemented
            | Code::DataLoss
            | Code::Unauthenticated => Unknown::ServerError,
        }),
    }
}

/// The same for a replica that called another one.
pub const fn call_failure(code: Code, sign: Sign) -> CallFailure {
    match proof(code, sign) {
        Proof::Definite => CallFailure::BeforeConnection,
        Proof::Nothing => CallFailure::Later,
    }
}

#[cfg(test)]
mod tests {
    use super::{Code, Proof, Sign, call_failure, outcome, proof};
    use crate::rules::{event::CallFailure, outcome::OutcomeKind};

    #[test]
    fn only_what_happened_before_the_request_was_looked_at_is_definite() {
        let definite: Vec<&str> = Sign::ALL
            .iter()
            .filter(|sign| proof(Code::Unavailable, **sign) == Proof::Definite)
            .map(|sign| sign.word())
            .collect();
        assert_eq!(definite, ["nothing-sent", "not-connected", "refused-stream", "load-shed"]);
    }

    #[test]
    fn no_code_proves_anything_alone_and_unavailable_least_of_all() {
        for code in Code::ALL {
            assert_eq!(outcome(*code, Sign::None).kind(), OutcomeKind::Unknown, "{code}");
            assert_eq!(outcome(*code, Sign::OwnDeadline).kind(), OutcomeKind::Unknown, "{code}");
            assert_eq!(call_failure(*code, Sign::None), CallFailure::Later, "{code}");
        }
    }

    #[test]
    fn a_definite_sign_is_a_refusal_under_every_code() {
        for code in Code::ALL {
            for sign in [Sign::NothingSent, Sign::NotConnected, Sign::RefusedStream, Sign::LoadShed] {
                assert_eq!(outcome(*code, sign).kind(), OutcomeKind::Refused, "{code} {sign}");
            }
        }
    }
}
