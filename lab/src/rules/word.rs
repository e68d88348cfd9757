//! Switches that have one word for each position.
//!
//! The same word is used on the command line, in the history, in scripts and on the screen. So it stands once, beside
//! the variant.

/// Makes an enum whose variants have a word each: `ALL`, `word`, `Display`, `FromStr` and serde by that word.
macro_rules! words {
    (
        $(#[$about:meta])*
        pub enum $name:ident, $what:literal {
            $( $(#[$why:meta])* $variant:ident = $word:literal, )+
        }
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $( $(#[$why])* #[serde(rename = $word)] $variant, )+
        }

        impl $name {
            /// Every position of the switch, in the order in which it is explained.
            pub const ALL: &'static [Self] = &[ $( Self::$variant, )+ ];

            /// The word for it.
            pub const fn word(self) -> &'static str {
                match self { $( Self::$variant => $word, )+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.word())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::rules::word::UnknownWord;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let found = Self::ALL.iter().copied().find(|one| one.word() == text);
                found.ok_or_else(|| $crate::rules::word::UnknownWord {
                    what: $what,
                    text: text.to_owned(),
                    known: Self::ALL.iter().map(|one| one.word()).collect::<Vec<_>>().join(", "),
                })
            }
        }
    };
}
pub(crate) use words;

/// A word that the switch does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no {what}; known are: {known}")]
pub struct UnknownWord {
    /// Which switch.
    pub what: &'static str,
    /// What was said.
    pub text: String,
    /// What could have been said.
    pub known: String,
}
