//! Golden bytes of the store's own rows in format 1, sealed as they stand in the state, in `tests/fixtures/rows`.
//!
//! A file that was released stays for ever. `COUNTERFOIL_WRITE_FIXTURES=1 cargo test --lib golden_rows` writes those that
//! are missing, and only those.

use std::fmt::Debug;
use std::path::PathBuf;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::base::position::Position;
use crate::base::receipt::Outcome;
use crate::base::reply::Reply;
use crate::log::record::{
    CallbackRecord, CallbackVerdict, ClaimHolder, EffectReport, IntentRecord, LookUpAbility, ProviderAbilities,
    ReportSource, Reported,
};
use crate::state::{Codec, TableDeclaration};
use crate::store::effects::rows::{CallbackRow, EffectRow, PhaseRow, effect_key, pair_key};
use crate::store::rows::{
    ClaimRow, ExpiryRow, ReceiptRow, ScopeRow, SlotRow, System, Tier, expiry_key, open_row, seal_row, sequence_key,
    slot_key_of,
};

const SCOPE: [u8; 16] = *b"sixteen byte key";
const POSITION: Position = Position { epoch: 3, sequence: 1042 };

fn golden<T: Serialize + DeserializeOwned + PartialEq + Debug>(name: &str, table: System, key: &[u8], row: &T) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/rows").join(format!("{name}.bin"));
    if std::env::var_os("COUNTERFOIL_WRITE_FIXTURES").is_some() && !path.exists() {
        std::fs::write(&path, seal_row(table, key, row)).expect("written");
    }
    let golden = std::fs::read(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(&open_row::<T>(table, key, &golden).expect(name), row, "{name} reads back");
    assert_eq!(seal_row(table, key, row), golden, "{name} has changed: format 1 has no room for that");
}

fn receipt() -> ReceiptRow {
    ReceiptRow {
        digest: [7; 32],
        operation_version: 2,
        outcome: Outcome::Rejected,
        position: POSITION,
        completed_ms: 1_767_225_600_000,
        completed_wall_ms: 1_767_225_600_001,
        replay_until_ms: 1_767_830_400_000,
        refuse_until_ms: 1_770_422_400_000,
        allowed_until_ms: Some(5),
        reply_bytes: 77,
        reply_erased: false,
        body_dropped: true,
        redacted: false,
        attempt: 3,
        trace_id: Some("00-trace".to_owned()),
        resource_id: Some("orders/7".to_owned()),
    }
}

#[test]
fn every_row_of_the_stores_own_is_written_and_read_as_format_1_has_it() {
    let slot = slot_key_of(&SCOPE, b"key-1");
    let scope = ScopeRow {
        tenant: "acme".to_owned(),
        actor: "alice".to_owned(),
        operation: "create_order".to_owned(),
        erased_through: 9,
    };
    golden("scope", System::Scopes, &SCOPE, &scope);
    golden("slot-receipt", System::Slots, &slot, &SlotRow::Receipt(receipt()));
    let claim = ClaimRow {
        digest: [8; 32],
        operation_version: 1,
        fence: 4,
        lease_ms: 30_000,
        lease_until_ms: 1_767_225_630_000,
        holder: ClaimHolder::External { name: "worker-1".to_owned() },
        attempt: 1,
        trace_id: None,
        position: POSITION,
    };
    golden("slot-claim", System::Slots, &slot, &SlotRow::Claim(claim));
    let reply = Reply::created().resource_id("orders/7").header("etag", "x").expect("a header").json(&[1, 2]);
    golden("reply", System::Replies, &sequence_key(POSITION.sequence), &reply.expect("a body"));
    for (name, tier) in
        [("expiry-replay", Tier::Replay), ("expiry-refuse", Tier::Refuse), ("expiry-callback", Tier::Callback)]
    {
        let expiry = ExpiryRow { key: slot.clone(), tier, refuse_until_ms: 1_770_422_400_000 };
        golden(name, System::Expiry, &expiry_key(1_767_830_400_000, POSITION.sequence), &expiry);
    }
    let table = TableDeclaration {
        name: "orders".to_owned(),
        key_type: "u64".to_owned(),
        codec: Codec::Json,
        version: 3,
        upgrades_from: vec![2],
        retired: vec![1],
        rows_of: vec![2, 3],
    };
    golden("table", System::Tables, b"orders", &table);
    golden("erased", System::Erased, &sequence_key(5), &9_u64);
    golden("claims", System::Claims, &slot, &4_u64);
    let (run_id, lease_until_ms) = ([4; 16], 1_767_225_630_000);
    let phases = [
        ("effect-planned", PhaseRow::Planned { not_before_ms: 5 }),
        ("effect-sending", PhaseRow::Sending { run_id, lease_until_ms }),
        ("effect-uncertain", PhaseRow::Uncertain { ask_not_before_ms: 6 }),
        ("effect-parked", PhaseRow::Parked),
        ("effect-applied", PhaseRow::Applied),
        ("effect-refused", PhaseRow::Refused),
    ];
    for (name, phase) in phases {
        golden(name, System::Effects, &effect_key(POSITION.sequence, 2), &effect(&slot, phase));
    }
    let delivery = pair_key("bank", "delivery-1");
    let record = CallbackRecord {
        provider: "bank".to_owned(),
        reference: Some("ch-1".to_owned()),
        delivery_id: "delivery-1".to_owned(),
        identity: None,
        order: Some(3),
        verdict: CallbackVerdict::Parked,
        forget_after_ms: 1_770_422_400_000,
        report: report(),
    };
    golden("callback", System::Deliveries, &delivery, &CallbackRow { sequence: 1043, record });
}

fn report() -> EffectReport {
    EffectReport {
        outcome: Reported::Applied,
        source: ReportSource::Callback,
        provider_reference: Some("ch-1".to_owned()),
        body: b"paid".to_vec(),
    }
}

fn effect(slot: &[u8], phase: PhaseRow) -> EffectRow {
    let abilities = ProviderAbilities {
        dedupe_window_ms: Some(86_400_000),
        lookup: LookUpAbility::Bounded { in_flight_ms: 60_000 },
        callbacks: true,
    };
    let intent = IntentRecord {
        ordinal: 2,
        identity: [9; 32],
        provider: "bank".to_owned(),
        payload: b"12.00".to_vec(),
        content_type: Some("text/plain".to_owned()),
        abilities,
        order_key: Some("account-7".to_owned()),
        attempts_max: 8,
        not_before_ms: 5,
        not_after_ms: Some(7),
        provider_reference: Some("ref-1".to_owned()),
    };
    let row = EffectRow::planned(slot.to_vec(), intent, 1_767_225_600_000);
    EffectRow { phase, fence: 3, attempt: 3, doubt: true, report: Some(report()), dispute: Some(report()), ..row }
}
