//! One value of every shape that a record can have.

use crate::base::receipt::Outcome;
use crate::base::reply::Reply;
use crate::log::record::*;

pub(super) const WALL_MS: u64 = 1_767_225_600_000;

fn slot() -> SlotRecord {
    SlotRecord {
        scope: *b"scope-of-16-byte",
        tenant: "acme".to_owned(),
        actor: "alice".to_owned(),
        operation: "create_order".to_owned(),
        key: b"key-1\0\xff".to_vec(),
    }
}

fn reply() -> Reply {
    Reply::created()
        .resource_id("orders/7")
        .header("location", "/orders/7")
        .expect("a header")
        .json(&["made"])
        .expect("JSON")
}

fn completion(outcome: Outcome) -> Completion {
    Completion {
        outcome,
        replay_until_ms: WALL_MS + 604_800_000,
        refuse_until_ms: WALL_MS + 3_196_800_000,
        allowed_until_ms: Some(WALL_MS + 60_000),
        reply: reply(),
        body_dropped: false,
        redacted: true,
    }
}

fn changes() -> Vec<TableChanges> {
    let put = RowChange::Put { key: vec![0, 0, 0, 7], value: b"sealed value".as_slice().into() };
    let remove = RowChange::Remove { key: vec![0, 0, 0, 8] };
    vec![
        TableChanges { table: "orders".to_owned(), rows: vec![put, remove] },
        TableChanges { table: "stock".to_owned(), rows: Vec::new() },
    ]
}

fn intent(lookup: LookUpAbility) -> IntentRecord {
    IntentRecord {
        ordinal: 1,
        identity: [0x1d; 32],
        provider: "payments".to_owned(),
        payload: b"{\"cents\":100}".to_vec(),
        content_type: Some("application/json".to_owned()),
        abilities: ProviderAbilities { dedupe_window_ms: Some(86_400_000), lookup, callbacks: true },
        order_key: Some("account-9".to_owned()),
        attempts_max: 8,
        not_before_ms: WALL_MS,
        not_after_ms: Some(WALL_MS + 3_600_000),
        provider_reference: Some("ref-1".to_owned()),
    }
}

fn intents() -> Vec<IntentRecord> {
    let bounded = LookUpAbility::Bounded { in_flight_ms: 30_000 };
    [LookUpAbility::None, LookUpAbility::Plain, bounded, LookUpAbility::Bars].map(intent).to_vec()
}

fn operation(outcome: Outcome) -> OperationRecord {
    OperationRecord {
        slot: slot(),
        digest: [0xd1; 32],
        operation_version: 2,
        completion: completion(outcome),
        attempt: 3,
        trace_id: Some("00-trace-01".to_owned()),
        changes: changes(),
        intents: intents(),
        claim_fence: Some(5),
    }
}

fn claim(action: ClaimAction) -> Body {
    Body::Claim(ClaimRecord {
        slot: slot(),
        digest: [0xd1; 32],
        operation_version: 1,
        fence: 5,
        action,
        decided_by: Some("olga".to_owned()),
        reason: Some("its holder was switched off".to_owned()),
    })
}

fn taken(holder: ClaimHolder) -> ClaimAction {
    ClaimAction::Taken {
        lease_ms: 30_000,
        lease_until_ms: WALL_MS + 30_000,
        holder,
        attempt: 1,
        trace_id: Some("00-trace-01".to_owned()),
    }
}

fn report(outcome: Reported, source: ReportSource) -> EffectReport {
    EffectReport { outcome, source, provider_reference: Some("ref-1".to_owned()), body: b"paid".to_vec() }
}

fn handler_report() -> EffectReport {
    report(Reported::Applied, ReportSource::Handler)
}

fn effect_record(transition: EffectTransition) -> EffectRecord {
    EffectRecord {
        identity: [0x1d; 32],
        fence: 6,
        attempt: 2,
        transition,
        decided_by: Some("olga".to_owned()),
        reason: Some("seen in the provider's ledger".to_owned()),
    }
}

fn effect(transition: EffectTransition) -> Body {
    Body::Effect(effect_record(transition))
}

/// The pair of outcome and source need not make sense: what counts is that each has its number.
fn applied(outcome: Reported, source: ReportSource) -> Body {
    effect(EffectTransition::Applied(report(outcome, source)))
}

fn erase_record(target: EraseTarget) -> EraseRecord {
    EraseRecord {
        target,
        sequences: vec![(3, 5), (9, 9)],
        decided_by: Some("olga".to_owned()),
        reason: "asked for".to_owned(),
    }
}

fn table() -> TableRecord {
    TableRecord {
        name: "orders".to_owned(),
        key_type: "u64".to_owned(),
        codec: 1,
        version: 3,
        upgrades_from: vec![2],
        retired: vec![1],
        rows_of: vec![2, 3],
    }
}

fn clock() -> ClockRecord {
    ClockRecord { accepted_ms: WALL_MS, decided_by: Some("olga".to_owned()), reason: "NTP was off".to_owned() }
}

fn restore() -> RestoreRecord {
    RestoreRecord { backup_id: [0xba; 16], from_epoch: 4, from_sequence: 1_000 }
}

fn callback(verdict: CallbackVerdict) -> Body {
    Body::Callback(CallbackRecord {
        provider: "payments".to_owned(),
        reference: Some("ref-1".to_owned()),
        delivery_id: "delivery-1".to_owned(),
        identity: Some([0x1d; 32]),
        order: Some(12),
        verdict,
        forget_after_ms: WALL_MS + 86_400_000,
        report: report(Reported::Refused, ReportSource::Callback),
    })
}

fn resolve() -> ResolveRecord {
    ResolveRecord {
        slot: slot(),
        accepted_sequence: 41,
        effects: vec![effect_record(EffectTransition::Applied(handler_report()))],
        completion: completion(Outcome::Completed),
        changes: changes(),
        intents: intents(),
        callbacks: vec![43, 44],
    }
}

fn activity() -> ActivityRecord {
    let slot = SlotActivity {
        scope: *b"scope-of-16-byte",
        key: b"key-1".to_vec(),
        replays: 3,
        conflicts: 1,
        last_ms: WALL_MS,
    };
    ActivityRecord { since_ms: WALL_MS - 1_000, slots: vec![slot] }
}

/// Every shape, under the name of its file.
pub(super) fn shapes() -> Vec<(&'static str, Body)> {
    let actor = EraseTarget::Actor { tenant: "acme".to_owned(), actor: "alice".to_owned() };
    let tenant = EraseTarget::Tenant { tenant: "acme".to_owned() };
    let external = ClaimHolder::External { name: "worker-3".to_owned() };
    vec![
        ("operation-completed", Body::Operation(operation(Outcome::Completed))),
        ("operation-rejected", Body::Operation(operation(Outcome::Rejected))),
        ("operation-accepted", Body::Operation(operation(Outcome::Accepted))),
        ("write", Body::Write(WriteRecord { changes: changes() })),
        ("table-declared", Body::TableDeclared(table())),
        ("clock-accepted", Body::ClockAccepted(clock())),
        (
            "sweep",
            Body::Sweep(SweepRecord {
                from_deadline_ms: WALL_MS - 9,
                from_sequence: 5,
                deadline_ms: WALL_MS,
                sequence: 77,
                rows: 300,
            }),
        ),
        ("erase-operation", Body::Erase(erase_record(EraseTarget::Operation(slot())))),
        ("erase-actor", Body::Erase(erase_record(actor))),
        ("erase-tenant", Body::Erase(erase_record(tenant))),
        ("restore", Body::Restore(restore())),
        ("claim-taken-run", claim(taken(ClaimHolder::Run { run_id: [0x51; 16] }))),
        ("claim-taken-external", claim(taken(external))),
        ("claim-extended", claim(ClaimAction::Extended { lease_ms: 30_000, lease_until_ms: WALL_MS + 60_000 })),
        ("claim-released", claim(ClaimAction::Released)),
        ("claim-refused", claim(ClaimAction::Refused { evidence: b"late".to_vec() })),
        ("effect-sending", effect(EffectTransition::Sending { run_id: [0x51; 16], lease_until_ms: WALL_MS + 10_000 })),
        ("effect-planned", effect(EffectTransition::Planned { not_before_ms: WALL_MS + 500 })),
        ("effect-uncertain", effect(EffectTransition::Uncertain { ask_not_before_ms: WALL_MS + 30_000 })),
        ("effect-parked", effect(EffectTransition::Parked)),
        ("effect-applied", effect(EffectTransition::Applied(handler_report()))),
        ("effect-applied-look-up", applied(Reported::Pending, ReportSource::LookUp)),
        ("effect-applied-person", applied(Reported::NotFound, ReportSource::Person)),
        ("effect-refused", effect(EffectTransition::Refused(handler_report()))),
        ("effect-disputed", effect(EffectTransition::Disputed(handler_report()))),
        ("effect-stale", effect(EffectTransition::Stale(handler_report()))),
        ("effect-dispute-closed", effect(EffectTransition::DisputeClosed)),
        ("callback-parked", callback(CallbackVerdict::Parked)),
        ("callback-seen", callback(CallbackVerdict::Seen)),
        ("callback-applied", callback(CallbackVerdict::Applied)),
        ("callback-stale", callback(CallbackVerdict::Stale)),
        ("callback-disputed", callback(CallbackVerdict::Disputed)),
        ("resolve", Body::Resolve(resolve())),
        ("follower", Body::Follower(FollowerRecord { name: "mirror".to_owned(), acknowledged: Some(99) })),
        ("follower-removed", Body::Follower(FollowerRecord { name: "mirror".to_owned(), acknowledged: None })),
        ("activity", Body::Activity(activity())),
    ]
}
