//! Who, which, when: the names that everything else speaks of.
//!
//! Each is a type of its own, because a lab about identities that mixed two of them up would teach the wrong lesson.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// Milliseconds since the Unix epoch, or since the start of a simulation. Always an argument: rules never read a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Millis(pub u64);

impl Millis {
    /// This much later.
    pub const fn plus(self, milliseconds: u64) -> Self {
        Self(self.0.saturating_add(milliseconds))
    }

    /// How long after `earlier`; nothing, if it was not.
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// One replica: a place in the configured membership. It says nothing about the process or the disk behind the name,
/// which is what the lesson `same-name-empty-disk` is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ReplicaId(u8);

/// More replicas fit on no screen that thirty people can read.
pub const REPLICAS_MAX: u8 = 9;

/// What was said is not the name of a replica.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no replica: say a letter from a to i, or a number from 1 to 9")]
pub struct NotAReplica(pub String);

impl ReplicaId {
    /// The first configured member.
    pub const FIRST: Self = Self(1);

    /// Replica number 1 to 9.
    pub const fn new(number: u8) -> Option<Self> {
        if number >= 1 && number <= REPLICAS_MAX { Some(Self(number)) } else { None }
    }

    /// 1 for A.
    pub const fn number(self) -> u8 {
        self.0
    }

    /// The letter on the screen.
    pub const fn letter(self) -> char {
        (b'A' + self.0 - 1) as char
    }
}

impl fmt::Display for ReplicaId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.letter().encode_utf8(&mut [0; 4]))
    }
}

impl FromStr for ReplicaId {
    type Err = NotAReplica;

    fn from_str(text: &str) -> Result<Self, NotAReplica> {
        let number = match text.as_bytes() {
            [letter @ b'a'..=b'i'] => letter - b'a' + 1,
            [letter @ b'A'..=b'I'] => letter - b'A' + 1,
            [digit @ b'1'..=b'9'] => digit - b'0',
            _ => return Err(NotAReplica(text.to_owned())),
        };
        Ok(Self(number))
    }
}

impl TryFrom<String> for ReplicaId {
    type Error = NotAReplica;

    fn try_from(text: String) -> Result<Self, NotAReplica> {
        text.parse()
    }
}

impl From<ReplicaId> for String {
    fn from(id: ReplicaId) -> Self {
        id.to_string()
    }
}

/// One end of a link. Faults name links, and every line of a space-time diagram is one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Endpoint {
    /// The retrying client.
    Client,
    /// A replica.
    Replica(ReplicaId),
    /// The external payment provider.
    Provider,
    /// Who starts and stops the others, and asks them for their lamps.
    Supervisor,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Client => f.pad("client"),
            Self::Replica(id) => id.fmt(f),
            Self::Provider => f.pad("provider"),
            Self::Supervisor => f.pad("supervisor"),
        }
    }
}

impl FromStr for Endpoint {
    type Err = NotAReplica;

    fn from_str(text: &str) -> Result<Self, NotAReplica> {
        Ok(match text {
            "client" => Self::Client,
            "provider" => Self::Provider,
            "supervisor" => Self::Supervisor,
            replica => Self::Replica(replica.parse()?),
        })
    }
}

impl TryFrom<String> for Endpoint {
    type Error = NotAReplica;

    fn try_from(text: String) -> Result<Self, NotAReplica> {
        text.parse()
    }
}

impl From<Endpoint> for String {
    fn from(endpoint: Endpoint) -> Self {
        endpoint.to_string()
    }
}

/// One run of the lab. Processes, directories and histories carry it, so that two labs at once never meet.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(pub String);

/// One disk, as opposed to one name: it is drawn when a store is made, and a wiped replica has another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct IncarnationId(pub String);

impl fmt::Display for IncarnationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The identity of an operation, chosen by the client: the same in every attempt, if the client knows what it is doing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Key(String);

/// The longest key.
pub const KEY_BYTES_MAX: usize = 64;

/// What was said is not a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no key: 1 to 64 letters, digits, `-`, `_`, `.` or `:`")]
pub struct NotAKey(pub String);

impl Key {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Key {
    type Err = NotAKey;

    fn from_str(text: &str) -> Result<Self, NotAKey> {
        let known = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
        let whole = (1..=KEY_BYTES_MAX).contains(&text.len()) && text.bytes().all(known);
        if whole { Ok(Self(text.to_owned())) } else { Err(NotAKey(text.to_owned())) }
    }
}

impl TryFrom<String> for Key {
    type Error = NotAKey;

    fn try_from(text: String) -> Result<Self, NotAKey> {
        text.parse()
    }
}

impl From<Key> for String {
    fn from(key: Key) -> Self {
        key.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// How much is paid. What it is does not matter; that a retry may come with another one does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Amount(pub u64);

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Which try of one intent: 1 for the first. It identifies a message, never an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Attempt(pub u32);

impl Attempt {
    /// The first try.
    pub const FIRST: Self = Self(1);

    /// The try after this one.
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A number that a keeper gives out durably, larger each time. Who holds an older one than the newest is stale, whatever
/// it believes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Epoch(pub u64);

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a replica has in hand: one request on its way through the steps. It dies with the process, as it should.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OpId(pub u64);

/// Somebody who waits for an answer, a client or another replica. The driver chooses the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallId(pub u64);

/// What a user wanted once, however many attempts and keys it took. The judge counts executions per intent; so a client
/// that takes a new key for each attempt hides nothing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct IntentId(pub String);

impl fmt::Display for IntentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// An intent in an envelope. Replicas carry it from the request into the effect row and may not look inside: one that
/// did could remove duplicates by it, and every lesson would be a lie.
///
/// The envelope has no accessor that replica code may name; `tests/layers.rs` reads the sources, and
/// `tests/rules` swaps the contents and expects the same decisions.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SealedIntent(String);

impl SealedIntent {
    /// Into the envelope: by the client that has the intent.
    pub fn seal(intent: &IntentId) -> Self {
        Self(intent.0.clone())
    }

    /// Out of the envelope: by the judge, after the run.
    pub fn open_as_judge(&self) -> IntentId {
        IntentId(self.0.clone())
    }

    /// What travels in a message. For the file that speaks the wire format, and for no other.
    pub fn to_wire(&self) -> &str {
        &self.0
    }

    /// What came in a message.
    pub fn from_wire(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for SealedIntent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sealed")
    }
}
