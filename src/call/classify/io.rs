//! Errors of sockets.

use std::io::{Error, ErrorKind};

use super::super::verdict::{Kind, Verdict};

/// How far the attempt had come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Progress {
    /// No byte of the request had left.
    Connecting,
    /// Bytes may have left.
    Sent,
}

/// The verdict on an error of a socket.
pub fn error(error: &Error, progress: Progress) -> Verdict {
    let kind = error.kind();
    let is_one_of = |kinds: &[ErrorKind]| kinds.contains(&kind);
    let failure = if is_one_of(&[ErrorKind::TimedOut, ErrorKind::WouldBlock]) {
        Kind::Timeout
    } else if is_one_of(&[ErrorKind::InvalidInput, ErrorKind::Unsupported, ErrorKind::PermissionDenied]) {
        // A bad address, or a socket that this process may not open: the next attempt has the same.
        Kind::Permanent
    } else {
        Kind::Transient
    };
    // Nobody was there to take it, however far this side thought it was.
    let nobody = is_one_of(&[ErrorKind::ConnectionRefused, ErrorKind::AddrNotAvailable, ErrorKind::NotConnected]);
    match progress {
        Progress::Connecting => Verdict::not_sent(failure),
        Progress::Sent if nobody => Verdict::not_sent(failure),
        Progress::Sent => Verdict::maybe_applied(failure),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::verdict::EffectState;
    use super::*;

    fn verdict(kind: ErrorKind, progress: Progress) -> Verdict {
        error(&Error::from(kind), progress)
    }

    #[test]
    fn whatever_fails_while_connecting_sent_nothing() {
        for kind in [
            ErrorKind::ConnectionRefused,
            ErrorKind::TimedOut,
            ErrorKind::ConnectionReset,
            ErrorKind::HostUnreachable,
            ErrorKind::Other,
        ] {
            assert_eq!(verdict(kind, Progress::Connecting).effect, EffectState::NotSent, "{kind:?}");
        }
    }

    #[test]
    fn a_connection_that_breaks_after_bytes_left_may_have_done_it() {
        for kind in [
            ErrorKind::ConnectionReset,
            ErrorKind::ConnectionAborted,
            ErrorKind::BrokenPipe,
            ErrorKind::UnexpectedEof,
            ErrorKind::HostUnreachable,
            ErrorKind::Other,
        ] {
            assert_eq!(verdict(kind, Progress::Sent), Verdict::maybe_applied(Kind::Transient), "{kind:?}");
        }
        assert_eq!(verdict(ErrorKind::WouldBlock, Progress::Sent), Verdict::maybe_applied(Kind::Timeout));
    }

    #[test]
    fn a_refused_connection_proves_that_nothing_was_sent() {
        assert_eq!(verdict(ErrorKind::ConnectionRefused, Progress::Sent), Verdict::not_sent(Kind::Transient));
    }

    #[test]
    fn what_this_side_does_wrong_is_permanent() {
        assert_eq!(verdict(ErrorKind::InvalidInput, Progress::Connecting), Verdict::not_sent(Kind::Permanent));
    }
}
