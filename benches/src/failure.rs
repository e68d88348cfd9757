//! What went wrong, and what to do next.

use std::fmt;

/// A failure that a person can act on.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    what: String,
    next: &'static str,
}

pub(crate) type Outcome<T> = Result<T, Failure>;

impl Failure {
    pub(crate) fn new(what: impl Into<String>, next: &'static str) -> Self {
        Self { what: what.into(), next }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}\n  next: {}", self.what, self.next)
    }
}

/// Says what was being done when something failed.
pub(crate) trait During<T> {
    fn during(self, what: &str) -> Outcome<T>;
}

impl<T, E: fmt::Display> During<T> for Result<T, E> {
    fn during(self, what: &str) -> Outcome<T> {
        self.map_err(|error| {
            Failure::new(
                format!("{what}: {error}"),
                "see that the directory is writable and has a few GiB free; --dir names another, --peers leaves one out",
            )
        })
    }
}
