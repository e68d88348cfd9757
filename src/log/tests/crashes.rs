//! Every place where a machine can stop, and then a second one inside recovery.

use super::*;
use crate::log::retain::removable;
use crate::log::retain::remove_oldest;

/// What a client may rely on.
#[derive(Clone, Debug, Default)]
struct Promises {
    /// Payloads of operations that were answered, by sequence from 1.
    answered: Vec<String>,
    /// The batch that was handed to the disk and not answered.
    in_flight: Vec<String>,
    state: Option<CheckpointState>,
}

impl Promises {
    fn state(&self) -> CheckpointState {
        self.state.unwrap_or(NEW)
    }

    /// Reads the log from the state's checkpoint on. All answered operations are there, and of the batch in flight a
    /// prefix; whatever is read is answered from now on.
    fn check(&mut self, log: &mut Recovered) {
        let applied = usize::try_from(self.state().applied_sequence).expect("small");
        let mut all = self.answered[..applied].to_vec();
        all.extend(contents(log));
        assert_eq!(all.len() as u64, log.durable);
        assert!(all.len() >= self.answered.len(), "an answered operation is lost: {self:?} {all:?}");
        let known: Vec<_> = self.answered.iter().chain(&self.in_flight).cloned().collect();
        assert_eq!(all[..], known[..all.len()], "nothing else, nothing twice");
        self.answered = all;
        self.in_flight.clear();
    }

    fn commit(&mut self, log: &mut Appender, payloads: Vec<String>) -> Result<(), AppendError> {
        self.in_flight = payloads;
        let payloads: Vec<_> = self.in_flight.iter().map(String::as_str).collect();
        append(log, &payloads)?;
        log.sync()?;
        self.answered.append(&mut self.in_flight);
        Ok(())
    }
}

/// A small deterministic source of choices.
struct Choices(u64);

impl Choices {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) % bound
    }

    fn coin(&mut self) -> bool {
        self.below(2) == 0
    }
}

/// Some batches, marks, rolls, a checkpoint and a close; stops at the first error, as a process that dies.
fn work(disk: &TestDisk, promises: &mut Promises, tag: &str) -> Option<()> {
    let mut log = try_open(disk, promises.state()).ok()?;
    promises.check(&mut log);
    let epoch = log.epoch;
    let mut log = log.appender;
    for round in 0..4 {
        let payloads = (0..=round % 3).map(|n| format!("{tag} {round} {n} {}", "x".repeat(300 * round))).collect();
        promises.commit(&mut log, payloads).ok()?;
        if round % 2 == 1 {
            let prepared = prepare_segment(disk, ID, &log.next_segment_spec(0), 0).ok()?;
            log.roll_to(prepared).ok()?;
        }
        if round == 2 {
            log.append_mark(0).ok()?;
            log.sync().ok()?;
            promises.state = Some(at(epoch, log.durable() - 1));
            for segment in removable(disk, ID, log.durable()).ok()? {
                remove_oldest(disk, segment.name).ok()?;
            }
        }
    }
    let spare = prepare_segment(disk, ID, &log.next_segment_spec(0), 0).ok()?;
    log.close(Some(spare), 0).ok()
}

fn after(disk: &TestDisk, crash: usize, choices: &mut Choices) -> TestDisk {
    match crash {
        0 => disk.after_kill(),
        1 => disk.after_power_loss(),
        _ => disk.after_torn_power_loss(|| choices.coin()),
    }
}

#[test]
fn a_stop_at_any_call_and_another_inside_recovery_lose_nothing_that_was_answered() {
    let mut choices = Choices(0x5eed);
    let (mut first, mut stops) = (0, 0);
    loop {
        let disk = TestDisk::default();
        disk.break_after(first);
        let mut promises = Promises::default();
        let finished = work(&disk, &mut promises, "a").is_some();
        for crash in 0..3 {
            let disk = after(&disk, crash, &mut choices);
            for second in 0.. {
                let (disk, mut promises) = (disk.after_kill(), promises.clone());
                disk.break_after(second);
                let opened = match try_open(&disk, promises.state()) {
                    Ok(mut log) => {
                        promises.check(&mut log);
                        true
                    }
                    Err(error) => {
                        assert!(matches!(error, LogError::Io { .. } | LogError::Prepare(_)), "{first} {error}");
                        false
                    }
                };
                stops += 1;
                for crash in 0..3 {
                    let disk = after(&disk, crash, &mut choices);
                    let mut promises = promises.clone();
                    promises.check(&mut open(&disk, promises.state()));
                    // What was shown by one recovery stays, whatever comes.
                    promises.check(&mut open(&disk.after_power_loss(), promises.state()));
                }
                if opened {
                    break;
                }
            }
        }
        if finished {
            break;
        }
        first += 1;
    }
    assert!(first > 40 && stops > 1_000, "{first} {stops}");
}

#[test]
fn long_lives_of_stops_and_torn_writes_lose_nothing_that_was_answered() {
    for seed in 1..=30 {
        let mut choices = Choices(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed));
        let mut disk = TestDisk::default();
        let mut promises = Promises::default();
        for life in 0..8 {
            disk.break_after(choices.below(60));
            if work(&disk, &mut promises, &format!("{seed}.{life}")).is_some() {
                let applied = promises.state().applied_sequence;
                let report = check_all(&disk, ID, Extent::Closed { applied }, 1).expect("checked");
                assert!(report.problems.is_empty(), "{:?}", report.problems);
            }
            let crash = usize::try_from(choices.below(3)).expect("small");
            disk = after(&disk, crash, &mut choices);
        }
        promises.check(&mut open(&disk, promises.state()));
    }
}

/// A name that only the cache knows must be durable before another name is made that depends on it.
#[test]
fn an_epoch_whose_name_was_never_synced_is_not_built_upon() {
    let disk = TestDisk::default();
    let mut log = open(&disk, NEW).appender;
    append(&mut log, &["one"]).expect("in the cache only");
    let killed = disk.after_kill();
    open(&killed, at(1, 0));
    let calls = killed.calls();
    let killed = disk.after_kill();
    killed.break_after(calls - 1);
    assert!(try_open(&killed, at(1, 0)).is_err(), "stopped before its name was synced");
    for calls in 0..calls {
        let disk = killed.after_kill();
        // The removal of the unfinished segment failed as well, so its name is still there.
        assert!(disk.names().contains(&file(2, 0)));
        disk.break_after(calls);
        assert!(try_open(&disk, at(1, 0)).is_err());
        for pattern in 0..8_u32 {
            let mut asked = 0;
            let lost = disk.after_torn_power_loss(|| {
                asked += 1;
                asked <= 3 && pattern & (1 << (asked - 1)) != 0
            });
            open(&lost, at(1, 0));
        }
    }
}

#[test]
fn one_failing_call_is_never_more_than_an_error() {
    for call in 1..60 {
        let disk = TestDisk::default();
        disk.fail_call(call, std::io::ErrorKind::StorageFull);
        let mut promises = Promises::default();
        let _ended_early = work(&disk, &mut promises, "a").is_none();
        for crash in 0..2 {
            let disk = after(&disk, crash, &mut Choices(1));
            promises.clone().check(&mut open(&disk, promises.state()));
        }
    }
}
