//! Golden bytes of every record of format 1, one file for each shape, in `tests/fixtures/records`.
//!
//! A file that was released stays for ever. Only a shape that is new may write one:
//! `COUNTERFOIL_WRITE_FIXTURES=1 cargo test --lib record_tests` writes those that are missing, and with the value
//! `overwrite` all of them.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::record::*;
use crate::base::encoding::encode;
use crate::base::receipt::Outcome;
use crate::base::reply::Reply;

const WALL_MS: u64 = 1_767_225_600_000;
/// Where the number of the body stands: behind `wall_ms`, a mark byte and eight more.
const BODY_AT: usize = 9;

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
    let put = RowChange::Put { key: vec![0, 0, 0, 7], value: b"sealed value".to_vec() };
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
    RestoreRecord {
        backup_id: [0xba; 16],
        from_epoch: 4,
        from_sequence: 1_000,
        erased: vec![erase_record(EraseTarget::Tenant { tenant: "acme".to_owned() })],
    }
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
fn shapes() -> Vec<(&'static str, Body)> {
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
        ("sweep", Body::Sweep(SweepRecord { deadline_ms: WALL_MS, sequence: 77, rows: 300 })),
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

fn record(body: Body) -> Record {
    Record { wall_ms: WALL_MS, body }
}

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/records").join(format!("{name}.bin"))
}

/// Writes fixtures if, and only if, the environment asks for it.
fn write_fixtures_if_asked() {
    let Ok(how) = std::env::var("COUNTERFOIL_WRITE_FIXTURES") else { return };
    for (name, body) in shapes() {
        let path = fixture(name);
        if how == "overwrite" || !path.exists() {
            std::fs::write(path, record(body).to_bytes().expect("encoded")).expect("written");
        }
    }
}

#[test]
fn every_record_is_written_and_read_as_format_1_has_it() {
    write_fixtures_if_asked();
    for (name, body) in shapes() {
        let golden = std::fs::read(fixture(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        let record = record(body);
        assert_eq!(Record::from_bytes(&golden).expect(name), record, "{name} reads back");
        assert_eq!(record.to_bytes().expect(name), golden, "{name} has changed: format 1 has no room for that");
    }
}

#[test]
fn every_fixture_is_of_a_shape_that_is_still_read() {
    write_fixtures_if_asked();
    let known: BTreeSet<PathBuf> = shapes().into_iter().map(|(name, _)| fixture(name)).collect();
    let directory = fixture("x");
    let directory = directory.parent().expect("it is in a directory");
    for entry in std::fs::read_dir(directory).expect("the fixtures are there") {
        let path = entry.expect("readable").path();
        assert!(known.contains(&path), "{} is read by no test", path.display());
    }
}

#[test]
fn a_record_that_is_cut_or_extended_is_an_error() {
    for (name, body) in shapes() {
        let bytes = record(body).to_bytes().expect("encoded");
        for len in 0..bytes.len() {
            assert!(Record::from_bytes(&bytes[..len]).is_err(), "{name} cut to {len} bytes");
        }
        let longer = [&bytes[..], &[0]].concat();
        assert!(Record::from_bytes(&longer).is_err(), "{name} with a byte more");
    }
}

#[test]
fn a_record_of_an_unknown_number_is_an_error() {
    let mut bytes = record(Body::Write(WriteRecord { changes: Vec::new() })).to_bytes().expect("encoded");
    bytes[BODY_AT] = 250;
    assert!(Record::from_bytes(&bytes).is_err());
}

#[test]
fn no_flipped_bit_makes_decoding_panic_or_ask_for_the_moon() {
    for (_, body) in shapes() {
        let bytes = record(body).to_bytes().expect("encoded");
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            drop(Record::from_bytes(&flipped));
        }
    }
}

/// Name and number of each variant. The matches have no wildcard: a new variant has to be written down here, in
/// `shapes` and in `docs/format.md`.
const fn body_number(body: &Body) -> (&'static str, u8) {
    match body {
        Body::Operation(_) => ("Operation", 0),
        Body::Write(_) => ("Write", 1),
        Body::TableDeclared(_) => ("TableDeclared", 2),
        Body::ClockAccepted(_) => ("ClockAccepted", 3),
        Body::Sweep(_) => ("Sweep", 4),
        Body::Erase(_) => ("Erase", 5),
        Body::Restore(_) => ("Restore", 6),
        Body::Claim(_) => ("Claim", 7),
        Body::Effect(_) => ("Effect", 8),
        Body::Callback(_) => ("Callback", 9),
        Body::Resolve(_) => ("Resolve", 10),
        Body::Follower(_) => ("Follower", 11),
        Body::Activity(_) => ("Activity", 12),
    }
}

const fn outcome_number(outcome: Outcome) -> (&'static str, u8) {
    match outcome {
        Outcome::Completed => ("Completed", 0),
        Outcome::Rejected => ("Rejected", 1),
        Outcome::Accepted => ("Accepted", 2),
    }
}

const fn target_number(target: &EraseTarget) -> (&'static str, u8) {
    match target {
        EraseTarget::Operation(_) => ("Operation", 0),
        EraseTarget::Actor { .. } => ("Actor", 1),
        EraseTarget::Tenant { .. } => ("Tenant", 2),
    }
}

const fn action_number(action: &ClaimAction) -> (&'static str, u8) {
    match action {
        ClaimAction::Taken { .. } => ("Taken", 0),
        ClaimAction::Extended { .. } => ("Extended", 1),
        ClaimAction::Released => ("Released", 2),
        ClaimAction::Refused { .. } => ("Refused", 3),
    }
}

const fn holder_number(holder: &ClaimHolder) -> (&'static str, u8) {
    match holder {
        ClaimHolder::Run { .. } => ("Run", 0),
        ClaimHolder::External { .. } => ("External", 1),
    }
}

const fn transition_number(transition: &EffectTransition) -> (&'static str, u8) {
    match transition {
        EffectTransition::Sending { .. } => ("Sending", 0),
        EffectTransition::Planned { .. } => ("Planned", 1),
        EffectTransition::Uncertain { .. } => ("Uncertain", 2),
        EffectTransition::Parked => ("Parked", 3),
        EffectTransition::Applied(_) => ("Applied", 4),
        EffectTransition::Refused(_) => ("Refused", 5),
        EffectTransition::Disputed(_) => ("Disputed", 6),
        EffectTransition::Stale(_) => ("Stale", 7),
        EffectTransition::DisputeClosed => ("DisputeClosed", 8),
    }
}

const fn ability_number(ability: LookUpAbility) -> (&'static str, u8) {
    match ability {
        LookUpAbility::None => ("None", 0),
        LookUpAbility::Plain => ("Plain", 1),
        LookUpAbility::Bounded { .. } => ("Bounded", 2),
        LookUpAbility::Bars => ("Bars", 3),
    }
}

const fn reported_number(outcome: Reported) -> (&'static str, u8) {
    match outcome {
        Reported::Applied => ("Applied", 0),
        Reported::Refused => ("Refused", 1),
        Reported::Pending => ("Pending", 2),
        Reported::NotFound => ("NotFound", 3),
    }
}

const fn source_number(source: ReportSource) -> (&'static str, u8) {
    match source {
        ReportSource::Handler => ("Handler", 0),
        ReportSource::LookUp => ("LookUp", 1),
        ReportSource::Callback => ("Callback", 2),
        ReportSource::Person => ("Person", 3),
    }
}

const fn verdict_number(verdict: CallbackVerdict) -> (&'static str, u8) {
    match verdict {
        CallbackVerdict::Parked => ("Parked", 0),
        CallbackVerdict::Seen => ("Seen", 1),
        CallbackVerdict::Applied => ("Applied", 2),
        CallbackVerdict::Stale => ("Stale", 3),
        CallbackVerdict::Disputed => ("Disputed", 4),
    }
}

const fn row_number(row: &RowChange) -> (&'static str, u8) {
    match row {
        RowChange::Put { .. } => ("Put", 0),
        RowChange::Remove { .. } => ("Remove", 1),
    }
}

/// The numbers that occur in the shapes, as lines of the table in `docs/format.md`. Each is compared with what the
/// encoder writes first on the way.
#[derive(Default)]
struct Numbers(BTreeSet<String>);

impl Numbers {
    fn note<T: serde::Serialize>(&mut self, of: &str, (variant, number): (&str, u8), value: &T) {
        assert_eq!(encode(value).expect("encoded")[0], number, "{of}::{variant}");
        self.0.insert(format!("| `{of}` | {number} | `{variant}` |"));
    }

    fn note_body(&mut self, body: &Body) {
        self.note("Body", body_number(body), body);
        match body {
            Body::Operation(operation) => {
                let outcome = operation.completion.outcome;
                self.note("Outcome", outcome_number(outcome), &outcome);
                for intent in &operation.intents {
                    let lookup = intent.abilities.lookup;
                    self.note("LookUpAbility", ability_number(lookup), &lookup);
                }
            }
            Body::Write(write) => {
                for row in write.changes.iter().flat_map(|table| &table.rows) {
                    self.note("RowChange", row_number(row), row);
                }
            }
            Body::Erase(erase) => self.note("EraseTarget", target_number(&erase.target), &erase.target),
            Body::Claim(claim) => {
                self.note("ClaimAction", action_number(&claim.action), &claim.action);
                if let ClaimAction::Taken { holder, .. } = &claim.action {
                    self.note("ClaimHolder", holder_number(holder), holder);
                }
            }
            Body::Effect(effect) => {
                self.note("EffectTransition", transition_number(&effect.transition), &effect.transition);
                if let EffectTransition::Applied(report) = &effect.transition {
                    self.note_report(report);
                }
            }
            Body::Callback(callback) => {
                self.note("CallbackVerdict", verdict_number(callback.verdict), &callback.verdict);
                self.note_report(&callback.report);
            }
            Body::TableDeclared(_)
            | Body::ClockAccepted(_)
            | Body::Sweep(_)
            | Body::Restore(_)
            | Body::Resolve(_)
            | Body::Follower(_)
            | Body::Activity(_) => {}
        }
    }

    fn note_report(&mut self, report: &EffectReport) {
        self.note("Reported", reported_number(report.outcome), &report.outcome);
        self.note("ReportSource", source_number(report.source), &report.source);
    }
}

/// The lines of the document's table of numbers: an enum, a number, a variant.
fn listed_numbers(document: &str) -> BTreeSet<String> {
    let number_line = |line: &str| {
        let mut cells = line.strip_prefix("| `")?.trim_end_matches(" |").split(" | ");
        let (of, number, variant) = (cells.next()?, cells.next()?, cells.next()?);
        number.parse::<u8>().ok().map(|number| format!("| `{of} | {number} | {variant} |"))
    };
    document.lines().filter_map(number_line).collect()
}

#[test]
fn the_numbers_of_variants_are_those_that_the_format_document_lists() {
    let mut numbers = Numbers::default();
    shapes().iter().for_each(|(_, body)| numbers.note_body(body));
    assert_eq!(numbers.0, listed_numbers(include_str!("../../docs/format.md")));
}
