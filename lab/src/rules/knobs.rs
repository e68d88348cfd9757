//! The switches. Every script can be run with every position of each; a lesson's broken and repaired variants differ in
//! the ones that they print, and in nothing else.

use serde::{Deserialize, Serialize};

use crate::rules::{
    ids::ReplicaId,
    record::{Request, Slot},
    word::words,
};

words! {
    /// Where the record of an operation lives. The one switch the lab is about.
    pub enum Placement, "placement" {
        /// Nowhere: the effect happens and nobody remembers it.
        None = "none",
        /// In a map of the process that coordinates.
        Memory = "memory",
        /// On the coordinator's disk, as a write of its own beside the effect's.
        Local = "local",
        /// On a majority of disks, but whoever is asked looks only at its own.
        MajorityReadOne = "majority-read-one",
        /// On a majority of disks, and a majority is asked first: check, then act.
        MajorityCheckThenAct = "majority-check-then-act",
        /// In the same durable write as the effect, at one owner.
        Atomic = "atomic",
        /// As atomic, at one keeper, which also compares the epoch of whoever executes, in that same write.
        AtomicFenced = "atomic-fenced",
        /// With the external provider, which is handed the identity and keeps it.
        Provider = "provider",
    }
}

words! {
    /// Which of two writes comes first, where there are two.
    pub enum Order, "order" {
        /// A crash in between does it again.
        EffectFirst = "effect-first",
        /// A crash in between never does it.
        RecordFirst = "record-first",
    }
}

words! {
    /// What the client takes as the identity of what it wants.
    pub enum Identity, "identity" {
        /// One key for one intent, in every attempt.
        PerIntent = "per-intent",
        /// A new key for every attempt. Then no record anywhere can help.
        PerAttempt = "per-attempt",
    }
}

words! {
    /// What is done with a known key and another amount.
    pub enum Mismatch, "mismatch rule" {
        /// The amount is taken as part of the identity: it is another operation.
        Ignore = "ignore",
        /// The old receipt is given, and the other amount silently never happens.
        OldAnswer = "old-answer",
        /// The client is told that its key stands for something else.
        Refuse = "refuse",
    }
}

words! {
    /// What is answered when the effect is done and its record did not reach a majority.
    pub enum NoMajority, "no-majority rule" {
        /// "Failed." A client that believes it tries again with a new key.
        Failed = "failed",
        /// "Unknown." It is the truth.
        Unknown = "unknown",
    }
}

words! {
    /// Whether something is on.
    pub enum Switch, "switch" {
        /// It is not.
        Off = "off",
        /// It is.
        On = "on",
    }
}

impl Switch {
    /// Whether it is on.
    pub const fn is_on(self) -> bool {
        matches!(self, Self::On)
    }
}

words! {
    /// What the external provider is given to recognise a repeated call by.
    pub enum ProviderIdentity, "provider identity" {
        /// Nothing: each call is a new charge.
        None = "none",
        /// A key, which it keeps with the charge.
        Key = "key",
        /// A reference by which it can be asked before it is called. Asking and calling are two steps.
        LookUp = "look-up",
    }
}

words! {
    /// Where the effect happens.
    pub enum EffectPlace, "place of the effect" {
        /// A ledger row in the store of the replica that executes.
        Inside = "inside",
        /// A charge at the external provider.
        Outside = "outside",
    }
}

/// All switches of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Knobs {
    /// Where the record lives.
    pub placement: Placement,
    /// Which of two writes comes first.
    pub order: Order,
    /// What the client takes as identity.
    pub identity: Identity,
    /// What a known key with another amount gets.
    pub mismatch: Mismatch,
    /// What is answered when the record did not reach a majority.
    pub no_majority: NoMajority,
    /// Whether disks are counted, as opposed to names: a replaced disk has no vote before it has caught up.
    pub incarnation: Switch,
    /// Whether a replica copies what it lacks when a cut is healed.
    pub catch_up_on_heal: Switch,
    /// What the provider recognises a repeated call by.
    pub provider: ProviderIdentity,
    /// Where the effect happens.
    pub effect: EffectPlace,
    /// The owner (atomic) or keeper (atomic-fenced). A configured member; it does not move when it dies.
    pub owner: ReplicaId,
}

impl Default for Knobs {
    /// Atomic, and honest in every other switch: what a newcomer should see first is the one that works.
    fn default() -> Self {
        Self {
            placement: Placement::Atomic,
            order: Order::EffectFirst,
            identity: Identity::PerIntent,
            mismatch: Mismatch::Refuse,
            no_majority: NoMajority::Unknown,
            incarnation: Switch::Off,
            catch_up_on_heal: Switch::Off,
            provider: ProviderIdentity::None,
            effect: EffectPlace::Inside,
            owner: ReplicaId::FIRST,
        }
    }
}

/// One switch that two variants have in different positions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Which switch, as the command line calls it.
    pub knob: &'static str,
    /// Its position here.
    pub from: String,
    /// Its position there.
    pub to: String,
}

impl Knobs {
    /// The default with another placement.
    pub fn placed(placement: Placement) -> Self {
        Self { placement, ..Self::default() }
    }

    /// Every switch with its position, in the order in which they are explained.
    pub fn positions(&self) -> [(&'static str, String); 10] {
        [
            ("placement", self.placement.to_string()),
            ("order", self.order.to_string()),
            ("identity", self.identity.to_string()),
            ("mismatch", self.mismatch.to_string()),
            ("no-majority", self.no_majority.to_string()),
            ("incarnation", self.incarnation.to_string()),
            ("catch-up-on-heal", self.catch_up_on_heal.to_string()),
            ("provider", self.provider.to_string()),
            ("effect", self.effect.to_string()),
            ("owner", self.owner.to_string()),
        ]
    }

    /// The switches that `other` has in another position.
    pub fn differences(&self, other: &Self) -> Vec<Difference> {
        let pairs = self.positions().into_iter().zip(other.positions());
        let different = pairs.filter(|((_, from), (_, to))| from != to);
        different.map(|((knob, from), (_, to))| Difference { knob, from, to }).collect()
    }

    /// Under which name the record of a request stands. If amounts are ignored as a mismatch, they are part of the
    /// identity: the same key with another amount is then simply another operation.
    pub fn slot(&self, request: &Request) -> Slot {
        match self.mismatch {
            Mismatch::Ignore => Slot(format!("{}={}", request.key, request.amount)),
            Mismatch::OldAnswer | Mismatch::Refuse => Slot(request.key.to_string()),
        }
    }

    /// Whether a stored amount is compared with the one that is asked for.
    pub const fn compares_amounts(&self) -> bool {
        matches!(self.mismatch, Mismatch::Refuse)
    }
}

#[cfg(test)]
mod tests {
    use super::{Knobs, NoMajority, Placement};

    #[test]
    fn two_variants_print_exactly_the_switches_in_which_they_differ() {
        let broken = Knobs { no_majority: NoMajority::Failed, ..Knobs::placed(Placement::None) };
        let differences = broken.differences(&Knobs::default());
        let lines: Vec<String> =
            differences.iter().map(|one| format!("{}: {} -> {}", one.knob, one.from, one.to)).collect();
        assert_eq!(lines, ["placement: none -> atomic", "no-majority: failed -> unknown"]);
        assert!(broken.differences(&broken).is_empty());
    }

    #[test]
    fn a_word_is_the_same_on_the_command_line_and_in_the_history() {
        for placement in Placement::ALL {
            assert_eq!(placement.word().parse(), Ok(*placement));
            assert_eq!(serde_json::to_string(placement).unwrap(), format!("\"{placement}\""));
        }
        let unknown = "both".parse::<Placement>().unwrap_err().to_string();
        assert!(unknown.starts_with("\"both\" is no placement; known are: none, memory, local, "), "{unknown}");
    }
}
