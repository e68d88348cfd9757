//! What the external provider decides. It is honest: it does what it is asked, keeps a ledger of it, and recognises a
//! repeated call by the identity that it was given, if it was given one for that.

use crate::rules::{
    ids::Endpoint,
    message::{ProviderCall, ProviderReply},
    record::{Charge, EffectRow, Receipt, Slot},
};

/// What it answers, and what goes into the ledger first. `find` looks for the first charge with an identity.
///
/// The driver puts the charge on disk before the answer leaves, and does both under one lock: else two calls at once
/// would both find nothing.
pub fn decide(call: ProviderCall, find: impl FnOnce(&Slot) -> Option<Charge>) -> (ProviderReply, Option<Charge>) {
    match call {
        ProviderCall::LookUp { identity } => match find(&identity) {
            Some(charge) => (ProviderReply::ChargedBefore(receipt(&charge.row)), None),
            None => (ProviderReply::NotFound, None),
        },
        ProviderCall::Pay { row, identity, compares_amounts, deduplicate } => {
            let known = identity.as_ref().filter(|_| deduplicate).and_then(find);
            match known {
                Some(charge) if compares_amounts && charge.row.amount != row.amount => {
                    (ProviderReply::Mismatch { held: charge.row.amount }, None)
                }
                Some(charge) => (ProviderReply::ChargedBefore(receipt(&charge.row)), None),
                None => (ProviderReply::Charged(receipt(&row)), Some(Charge { row, identity })),
            }
        }
    }
}

fn receipt(row: &EffectRow) -> Receipt {
    Receipt { key: row.key.clone(), amount: row.amount, attempt: row.attempt, by: Endpoint::Provider, position: None }
}
