//! Cases: how small the store's limits are, and what is done to it.

use proptest::prelude::*;

use crate::oracle::{Call, Who};
use crate::script::{Act, Ending, Script};
use crate::tables::{Direction, KEYS, Span};

/// What becomes of a ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Wait,
    Cancel,
    CancelLate,
    Drop,
}

/// What happens to what was queued.
#[derive(Clone, Debug)]
pub(crate) enum After {
    Step,
    /// A plain write joins the queue, and waits.
    Write(Script),
    Reopen(Stop),
}

/// How an opening ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stop {
    Close,
    Kill,
    /// With a seed for what survives of what was not synced.
    Crash(u64),
}

#[derive(Clone, Debug)]
pub(crate) enum Step {
    Execute(Call),
    Batch {
        calls: Vec<(Call, Fate)>,
        /// The guard is set once more after everything was submitted.
        revoked: Option<Option<u8>>,
        /// Milliseconds between submitting and what comes after it.
        pause: u16,
        after: After,
    },
    Write(Script),
    LookUp(Who),
    Scan(Span, Direction),
    Hold,
    Compare,
    Guard(Option<u8>),
    Advance(u32),
    Settle,
    Follow {
        from_oldest: bool,
    },
    Deploy(usize),
    Reopen(Stop),
}

/// One store and what is done to it.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) fold_bytes: usize,
    pub(crate) checkpoint_log_bytes: u64,
    pub(crate) steps: Vec<Step>,
}

pub(crate) fn case() -> impl Strategy<Value = Case> {
    let fold_bytes = prop_oneof![Just(1_usize << 20), Just(6_000), Just(1_500), Just(1)];
    let checkpoint = prop_oneof![Just(1_u64 << 20), Just(8_000), Just(1)];
    (fold_bytes, checkpoint, prop::collection::vec(step(), 1..70))
        .prop_map(|(fold_bytes, checkpoint_log_bytes, steps)| Case { fold_bytes, checkpoint_log_bytes, steps })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => call().prop_map(Step::Execute),
        10 => batch(),
        5 => script().prop_map(Step::Write),
        5 => who().prop_map(Step::LookUp),
        6 => (span(), direction()).prop_map(|(span, direction)| Step::Scan(span, direction)),
        3 => Just(Step::Hold),
        2 => Just(Step::Compare),
        2 => guarded().prop_map(Step::Guard),
        6 => time().prop_map(Step::Advance),
        3 => Just(Step::Settle),
        3 => any::<bool>().prop_map(|from_oldest| Step::Follow { from_oldest }),
        2 => (0..3_usize).prop_map(Step::Deploy),
        4 => ending_of_opening().prop_map(Step::Reopen),
    ]
}

fn batch() -> impl Strategy<Value = Step> {
    let fate =
        prop_oneof![6 => Just(Fate::Wait), 1 => Just(Fate::Cancel), 1 => Just(Fate::CancelLate), 1 => Just(Fate::Drop)];
    let after = prop_oneof![
        7 => Just(After::Step),
        1 => script().prop_map(After::Write),
        1 => ending_of_opening().prop_map(After::Reopen),
    ];
    let revoked = prop_oneof![8 => Just(None), 1 => guarded().prop_map(Some)];
    let pause = prop_oneof![4 => Just(0_u16), 1 => 0..60_u16];
    (prop::collection::vec((call(), fate), 1..13), revoked, pause, after)
        .prop_map(|(calls, revoked, pause, after)| Step::Batch { calls, revoked, pause, after })
}

fn call() -> impl Strategy<Value = Call> {
    let deadline = prop_oneof![6 => Just(None), 1 => (0..50_u16).prop_map(Some)];
    let body = prop_oneof![5 => Just(0_u8), 1 => Just(1_u8)];
    (who(), body, 1..4_u32, deadline, prop::bool::weighted(0.03), script()).prop_map(
        |(who, body, attempt, deadline, stale_release, script)| Call {
            who,
            body,
            attempt,
            deadline,
            stale_release,
            script,
        },
    )
}

fn who() -> impl Strategy<Value = Who> {
    (prop::bool::weighted(0.2), prop_oneof![3 => Just(0_u8), 2 => Just(1), 1 => Just(2)], 0..5_u8)
        .prop_map(|(is_ping, tenant, key)| Who { is_ping, tenant, key })
}

fn guarded() -> impl Strategy<Value = Option<u8>> {
    prop_oneof![3 => Just(None), 1 => (0..3_u8).prop_map(Some)]
}

/// Milliseconds: a moment, time enough for a mark, a good part of the retention, or a tier of it to the millisecond.
fn time() -> impl Strategy<Value = u32> {
    prop_oneof![
        Just(1_u32),
        100..200_u32,
        2_000..12_000_u32,
        40_000..100_000_u32,
        Just(10_000),
        Just(59_999),
        Just(60_000),
        Just(90_000),
    ]
}

fn ending_of_opening() -> impl Strategy<Value = Stop> {
    prop_oneof![Just(Stop::Close), Just(Stop::Kill), any::<u64>().prop_map(Stop::Crash)]
}

fn script() -> impl Strategy<Value = Script> {
    let ending = prop_oneof![
        16 => Just(Ending::Reply),
        2 => Just(Ending::Header),
        2 => Just(Ending::Reject),
        1 => Just(Ending::UndeclaredHeader),
        1 => Just(Ending::Huge),
        1 => Just(Ending::Fail),
        1 => Just(Ending::Panic),
    ];
    (prop::collection::vec(act(), 0..6), prop::bool::weighted(0.3), ending)
        .prop_map(|(acts, careless, ending)| Script { acts, careless, ending })
}

fn act() -> impl Strategy<Value = Act> {
    let key = || 0..KEYS;
    let stamp = || 0..1_000_u16;
    prop_oneof![
        10 => (key(), stamp()).prop_map(|(key, stamp)| Act::Put(key, stamp)),
        4 => (key(), stamp()).prop_map(|(key, stamp)| Act::InsertNew(key, stamp)),
        5 => key().prop_map(Act::Remove),
        3 => key().prop_map(Act::Get),
        3 => key().prop_map(Act::Update),
        8 => (key(), stamp()).prop_map(|(key, stamp)| Act::Add(key, stamp)),
        3 => key().prop_map(Act::RemoveCell),
        4 => (span(), direction()).prop_map(|(span, direction)| Act::ScanNotes(span, direction)),
        4 => (span(), direction()).prop_map(|(span, direction)| Act::ScanCells(span, direction)),
        2 => Just(Act::Count),
        2 => Just(Act::Ends),
        1 => prop_oneof![Just(Act::LongKey), key().prop_map(Act::LargeValue), Just(Act::ManyRows)],
    ]
}

fn span() -> impl Strategy<Value = Span> {
    let key = || 0..KEYS;
    let pair = || (key(), key());
    prop_oneof![
        Just(Span::All),
        pair().prop_map(|(from, to)| Span::Half(from, to)),
        pair().prop_map(|(from, to)| Span::Through(from, to)),
        pair().prop_map(|(from, to)| Span::Between(from, to)),
        key().prop_map(Span::From),
        key().prop_map(Span::Below),
        key().prop_map(Span::Prefix),
    ]
}

fn direction() -> impl Strategy<Value = Direction> {
    prop_oneof![Just(Direction::Forward), Just(Direction::Backward), Just(Direction::Both)]
}
