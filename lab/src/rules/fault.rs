//! Faults, inside the processes: rules for links, never the host's firewall.
//!
//! A rule says on which link, in which direction, which message, and how often: "lose exactly the next reply from A to the
//! client". So a fault needs no root, hits what was meant, and says afterwards whether it hit anything at all.

use serde::{Deserialize, Serialize};

use crate::rules::{
    ids::{Attempt, Endpoint, Key},
    message::MessageKind,
    word::words,
};

words! {
    /// Which half of a call.
    pub enum Direction, "direction" {
        /// On the way to whoever is asked.
        Request = "request",
        /// On the way back.
        Reply = "reply",
    }
}

/// What happens to a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// It never arrives.
    Drop,
    /// It arrives later.
    Delay {
        /// By how much.
        milliseconds: u64,
    },
    /// It waits until the rule is taken away, and then arrives.
    Hold,
}

/// A rule. What it does not name, it does not ask for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultRule {
    /// Who asks. Of a reply too: the ends of a link are those of the call.
    pub from: Option<Endpoint>,
    /// Who is asked.
    pub to: Option<Endpoint>,
    /// Which half; without one, both.
    pub direction: Option<Direction>,
    /// Which message.
    pub kind: Option<MessageKind>,
    /// With which key.
    pub key: Option<Key>,
    /// In which attempt.
    pub attempt: Option<Attempt>,
    /// How often; without a number, until it is taken away.
    pub count: Option<u32>,
    /// What happens.
    pub what: Fault,
}

/// A rule's number, for taking it away and for the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RuleId(pub u64);

/// A message on its way past the rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage<'a> {
    /// Who asks.
    pub from: Endpoint,
    /// Who is asked.
    pub to: Endpoint,
    /// Which half.
    pub direction: Direction,
    /// Which message.
    pub kind: MessageKind,
    /// With which key, if it has one.
    pub key: Option<&'a Key>,
    /// In which attempt, if it has one.
    pub attempt: Option<Attempt>,
}

impl FaultRule {
    /// A rule for everything; narrow it with the fields.
    pub const fn everything(what: Fault) -> Self {
        Self { from: None, to: None, direction: None, kind: None, key: None, attempt: None, count: None, what }
    }

    /// Both rules of a cut between two ends: whoever asks whom. Repeating it changes nothing, and so does healing it
    /// twice.
    pub fn cut(one: Endpoint, other: Endpoint) -> [Self; 2] {
        let from_to = |from, to| Self { from: Some(from), to: Some(to), ..Self::everything(Fault::Drop) };
        [from_to(one, other), from_to(other, one)]
    }

    /// Lose exactly the next reply to the client's request, of whoever answers it, or of one replica.
    pub fn next_reply(of: Option<Endpoint>) -> Self {
        Self {
            from: Some(Endpoint::Client),
            to: of,
            direction: Some(Direction::Reply),
            kind: Some(MessageKind::Request),
            count: Some(1),
            ..Self::everything(Fault::Drop)
        }
    }

    /// Whether it speaks of a message.
    pub fn matches(&self, passage: &Passage<'_>) -> bool {
        fn asked<T: PartialEq>(wanted: Option<&T>, found: Option<&T>) -> bool {
            wanted.is_none() || wanted == found
        }
        asked(self.from.as_ref(), Some(&passage.from))
            && asked(self.to.as_ref(), Some(&passage.to))
            && asked(self.direction.as_ref(), Some(&passage.direction))
            && asked(self.kind.as_ref(), Some(&passage.kind))
            && asked(self.key.as_ref(), passage.key)
            && asked(self.attempt.as_ref(), passage.attempt.as_ref())
    }
}

/// The rules of one process, with how often each has hit.
#[derive(Debug, Clone, Default)]
pub struct FaultTable {
    rules: Vec<Armed>,
}

#[derive(Debug, Clone)]
struct Armed {
    id: RuleId,
    rule: FaultRule,
    hits: u32,
}

impl FaultTable {
    /// Arms a rule. Under a number that is known, the old one goes.
    pub fn arm(&mut self, id: RuleId, rule: FaultRule) {
        self.disarm(id);
        self.rules.push(Armed { id, rule, hits: 0 });
    }

    /// Takes a rule away and says how often it hit; nothing, if there is none of that number.
    pub fn disarm(&mut self, id: RuleId) -> Option<u32> {
        let at = self.rules.iter().position(|armed| armed.id == id)?;
        Some(self.rules.remove(at).hits)
    }

    /// Whether a rule is there. A message that is held waits until it is not.
    pub fn is_armed(&self, id: RuleId) -> bool {
        self.rules.iter().any(|armed| armed.id == id)
    }

    /// What happens to a message: the first rule that speaks of it and is not used up decides, and counts the hit.
    pub fn pass(&mut self, passage: &Passage<'_>) -> Option<(RuleId, Fault)> {
        let left = |armed: &Armed| armed.rule.count.is_none_or(|count| armed.hits < count);
        let armed = self.rules.iter_mut().find(|armed| left(armed) && armed.rule.matches(passage))?;
        armed.hits = armed.hits.saturating_add(1);
        Some((armed.id, armed.rule.what))
    }

    /// How often each rule has hit.
    pub fn hits(&self) -> impl Iterator<Item = (RuleId, u32)> {
        self.rules.iter().map(|armed| (armed.id, armed.hits))
    }
}

#[cfg(test)]
mod tests {
    use super::{Direction, Fault, FaultRule, FaultTable, Passage, RuleId};
    use crate::rules::{
        ids::{Attempt, Endpoint, ReplicaId},
        message::MessageKind,
    };

    const A: Endpoint = Endpoint::Replica(ReplicaId::FIRST);

    fn passage(direction: Direction, attempt: u32) -> Passage<'static> {
        let (from, to, kind) = (Endpoint::Client, A, MessageKind::Request);
        Passage { from, to, direction, kind, key: None, attempt: Some(Attempt(attempt)) }
    }

    #[test]
    fn exactly_the_next_reply_is_lost_and_the_rule_says_that_it_hit() {
        let mut table = FaultTable::default();
        table.arm(RuleId(1), FaultRule::next_reply(Some(A)));
        assert_eq!(table.pass(&passage(Direction::Request, 1)), None);
        assert_eq!(table.pass(&passage(Direction::Reply, 1)), Some((RuleId(1), Fault::Drop)));
        assert_eq!(table.pass(&passage(Direction::Reply, 2)), None);
        assert_eq!(table.disarm(RuleId(1)), Some(1));
        assert_eq!(table.disarm(RuleId(1)), None, "taking it away again changes nothing");
    }

    #[test]
    fn a_rule_speaks_of_what_it_names_and_of_everything_it_does_not() {
        let second = FaultRule { attempt: Some(Attempt(2)), ..FaultRule::everything(Fault::Hold) };
        assert!(second.matches(&passage(Direction::Reply, 2)) && !second.matches(&passage(Direction::Reply, 1)));
        let keyed = FaultRule { key: "k".parse().ok(), ..FaultRule::everything(Fault::Hold) };
        assert!(!keyed.matches(&passage(Direction::Reply, 1)), "a message without a key is not one with this key");
    }

    #[test]
    fn a_cut_has_both_directions_and_each_can_be_armed_alone() {
        let [there, back] = FaultRule::cut(Endpoint::Client, A);
        let to_a = passage(Direction::Request, 1);
        assert!(there.matches(&to_a) && !back.matches(&to_a));
        assert!(back.matches(&Passage { from: A, to: Endpoint::Client, ..to_a }));
    }

    #[test]
    fn the_first_rule_that_is_not_used_up_decides() {
        let mut table = FaultTable::default();
        table.arm(RuleId(1), FaultRule { count: Some(1), ..FaultRule::everything(Fault::Drop) });
        table.arm(RuleId(2), FaultRule::everything(Fault::Delay { milliseconds: 5 }));
        let mut next = || table.pass(&passage(Direction::Request, 1)).map(|(id, _)| id.0);
        assert_eq!([next(), next(), next()], [Some(1), Some(2), Some(2)]);
    }
}
