//! One variant of a lesson, from the start of its processes to the verdict.

use std::path::PathBuf;

use tokio::sync::watch;

use super::report::{Numbers, Prediction, RunReport};
use super::script::{Act, Fall, Gap, Lesson, Point, Role, Variant};
use super::stage::Stage;
use crate::history::{self, HistoryError, HistoryEvent, Line, Moment, Plan, PlannedFault};
use crate::judge::{self, Evidence, Report};
use crate::process::run_dir::Runs;
use crate::rules::ids::Attempt;
use crate::rules::knobs::Knobs;
use crate::rules::outcome::{Outcome, OutcomeKind};
use crate::rules::verdict::{Expected, Verdict};
use crate::supervisor::ending::{Farewell, Stopped};
use crate::supervisor::error::LabError;
use crate::supervisor::lab::{Lab, LabOptions};

/// How lessons are run.
#[derive(Debug, Clone)]
pub struct Setting {
    /// The binary of which every process is made; this one, if none is named.
    pub program: Option<PathBuf>,
    /// Where runs keep their files.
    pub runs: Runs,
    /// The same for all variants of a lesson.
    pub seed: u64,
    /// Whether the fault is taken out: then nothing is shown, and the verdict has to say so.
    pub without_fault: bool,
}

/// A run that was judged, with its history for the diagram.
#[derive(Debug, Clone)]
pub struct Run {
    /// What is kept.
    pub report: RunReport,
    /// The history.
    pub lines: Vec<Line>,
}

/// Why there is no verdict. The lab has ended all the same, and nothing is left of it.
#[derive(Debug, thiserror::Error)]
pub enum NotRun {
    /// Somebody wanted it to end.
    #[error("interrupted; {0}")]
    Interrupted(Farewell),
    /// The lab did not do what the script wanted.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// Its history does not read.
    #[error("the history does not read: {0}")]
    History(#[from] HistoryError),
}

/// Runs a variant and judges it.
///
/// # Errors
///
/// [`NotRun`]; nothing is left.
pub async fn run(
    lesson: &Lesson,
    variant: &Variant,
    setting: &Setting,
    predicted: Option<&Prediction>,
    mut interrupts: watch::Receiver<u32>,
) -> Result<Run, NotRun> {
    let lab = Lab::prepare(options(lesson, variant, setting)?)?;
    for (question, answer) in predicted.map(Prediction::answers).into_iter().flatten() {
        lab.recorder().note(HistoryEvent::Predicted { question, answer });
    }
    let mut stage = match Stage::new(&lab, lesson, variant.knobs, setting.seed, setting.without_fault) {
        Ok(stage) => stage,
        Err(error) => {
            lab.stop().await?;
            return Err(error.into());
        }
    };
    let ending = lab.clone();
    let mut again = interrupts.clone();
    let at_once = tokio::spawn(async move {
        if again.wait_for(|count| *count >= 2).await.is_ok() {
            ending.end_at_once();
            std::process::exit(130);
        }
    });
    let playing = async {
        lab.bring_up().await?;
        stage.play(&variant.script).await
    };
    let played = tokio::select! {
        played = playing => Some(played),
        Ok(_) = interrupts.wait_for(|count| *count >= 1) => None,
    };
    let judged = match played {
        Some(Ok(())) => conclude(lab, lesson, variant, setting, stage).await,
        Some(Err(error)) => lab.stop().await.map_err(NotRun::from).and(Err(error.into())),
        None => lab.stop().await.map_err(NotRun::from).and_then(|farewell| Err(NotRun::Interrupted(farewell))),
    };
    at_once.abort();
    judged
}

fn options(lesson: &Lesson, variant: &Variant, setting: &Setting) -> Result<LabOptions, LabError> {
    let usual = LabOptions::new(lesson.replicas, variant.knobs)?;
    let program = setting.program.clone().unwrap_or_else(|| usual.program.clone());
    Ok(LabOptions {
        program,
        runs: setting.runs.clone(),
        seed: setting.seed,
        plan: Plan {
            name: format!("{}, {}", lesson.name, variant.name),
            expected: Expected::Exactly(variant.executed),
            faults: planned(lesson, variant),
            faults_min: 0,
            load_ms_min: 0,
        },
        ..usual
    })
}

/// The faults that must fall: those that can, under these switches.
fn planned(lesson: &Lesson, variant: &Variant) -> Vec<PlannedFault> {
    let applies = |fall: &&Fall| {
        let armed = variant.script.iter().find_map(|line| {
            if let Act::Arm(name, trouble) = line.act { (name == fall.name).then_some(trouble) } else { None }
        });
        armed.is_none_or(|trouble| trouble.applies(&variant.knobs))
    };
    let moment = |point| moment(point, lesson, variant);
    let fall = |fall: &Fall| PlannedFault {
        name: fall.name.to_owned(),
        after: moment(fall.after),
        before: moment(fall.before),
    };
    lesson.falls.iter().filter(applies).map(fall).collect()
}

fn moment(point: Point, lesson: &Lesson, variant: &Variant) -> Moment {
    match point {
        Point::Sent(attempt) => Moment::AttemptStarted(Attempt(attempt)),
        Point::Heard(attempt) => Moment::AttemptEnded(Attempt(attempt)),
        Point::Stands(attempt) => {
            let (role, gap) = stopped(variant, attempt).unwrap_or((Role::Executor, Gap::AfterLook));
            let barrier = gap.barrier(&variant.knobs, lesson.cast.plays(role, &variant.knobs));
            Moment::Held { barrier, attempt: Attempt(attempt) }
        }
    }
}

/// Where a script stops an attempt.
fn stopped(variant: &Variant, attempt: u32) -> Option<(Role, Gap)> {
    variant.script.iter().find_map(|line| {
        if let Act::Stop(number, role, gap) = line.act { (number == attempt).then_some((role, gap)) } else { None }
    })
}

async fn conclude(
    lab: Lab,
    lesson: &Lesson,
    variant: &Variant,
    setting: &Setting,
    stage: Stage,
) -> Result<Run, NotRun> {
    let Stopped { farewell, durable, history } = lab.stop_and_collect().await?;
    let judged = judge::check(history.as_slice(), &Evidence::from(durable))?;
    let mut lines = Vec::new();
    history::read(history.as_slice(), |_, line| lines.push(line))?;
    let told: Vec<OutcomeKind> = stage.heard.values().map(|attempt| attempt.outcome.kind()).collect();
    let is_found =
        |outcome: &Outcome| matches!(outcome, Outcome::Done { replayed: true, .. } | Outcome::Mismatch { .. });
    let seen = Numbers {
        executed: judged.totals.executions,
        found: stage.heard.values().any(|attempt| is_found(&attempt.outcome)),
        told,
    };
    let planned = Numbers { executed: variant.executed, found: variant.found, told: variant.told.clone() };
    let lamps: Vec<u8> = stage.counts.iter().map(|counted| counted.count).collect();
    let verdict = verdict(lesson, &judged, &planned, &seen, &lamps);
    let report = RunReport {
        variant: variant.name.to_owned(),
        knobs: variant.knobs,
        switches: differences(&lesson.broken.knobs, &variant.knobs),
        seed: setting.seed,
        predicted_by_its_author: planned,
        seen,
        lamps,
        attempts: stage.heard.into_values().collect(),
        verdict,
        judged,
        farewell,
    };
    Ok(Run { report, lines })
}

fn differences(broken: &Knobs, other: &Knobs) -> Vec<String> {
    let differences = broken.differences(other);
    differences.iter().map(|one| format!("{}: {} -> {}", one.knob, one.from, one.to)).collect()
}

/// The judge's verdict comes first. What it takes for as expected must also have looked as the author said.
fn verdict(lesson: &Lesson, judged: &Report, planned: &Numbers, seen: &Numbers, lamps: &[u8]) -> Verdict {
    if judged.verdict != Verdict::AsExpected {
        return judged.verdict.clone();
    }
    // The whole point is that a majority was there the whole time. A machine that is too slow to count it shows nothing.
    let counter = &judged.strips.counter;
    if counter.is_empty() || counter.iter().any(|(_, _, majority)| !majority) {
        return Verdict::NotExercised(vec!["the counter did not say \"majority\" at every count".to_owned()]);
    }
    let mut wrong = Vec::new();
    if seen.found != planned.found {
        wrong.push(format!("a record was {}found, expected was the opposite", if seen.found { "" } else { "not " }));
    }
    if seen.told != planned.told {
        wrong.push(format!("the client was told {}, expected was {}", seen.told_in_words(), planned.told_in_words()));
    }
    if lesson.lamps.is_some_and(|expected| lamps != expected) {
        wrong.push(format!("the lamps were {lamps:?}, expected were {:?}", lesson.lamps.unwrap_or_default()));
    }
    if wrong.is_empty() { Verdict::AsExpected } else { Verdict::Violation(wrong) }
}
