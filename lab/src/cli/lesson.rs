//! `lesson`: a prediction, a run with the harm, a question, and the run without it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use tokio::sync::watch;

use super::lesson_ask::Asker;
use super::up::interrupts;
use super::{Failed, Global, Outcome, say, say_json, style};
use crate::lesson::catalogue::{find, lessons};
use crate::lesson::report::{LessonReport, LessonsReport, Prediction};
use crate::lesson::run::{NotRun, Setting, run as run_variant};
use crate::lesson::screen;
use crate::lesson::script::{Lesson, Turn, Variant};
use crate::process::clock;
use crate::process::run_dir::Runs;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  counterfoil-lab lesson list\n  counterfoil-lab lesson lost-reply\n  \
                        counterfoil-lab lesson 5 --yes\n  counterfoil-lab lesson --all --check\n\n\
                        Exit codes: 0 as expected, 1 a violation, 2 not judged.")]
pub(super) struct LessonArguments {
    /// Its name or its number; `list` lists them
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    name: Option<String>,
    /// All lessons, one after the other
    #[arg(long)]
    all: bool,
    /// Ask for nothing, and print only a table of what was predicted and what was seen
    #[arg(long)]
    check: bool,
    /// Ask for nothing: for scripts
    #[arg(long)]
    yes: bool,
    /// Take the fault out: then nothing is put to the test, and the verdict has to say so
    #[arg(long)]
    without_fault: bool,
    /// The seed, the same for every variant
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Where the report goes, with the predictions [default: a new file below the labs' directory]
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

pub(super) async fn run(global: Global, arguments: LessonArguments) -> Outcome {
    if arguments.name.as_deref() == Some("list") {
        return list(&global);
    }
    let chosen = match &arguments.name {
        Some(name) => vec![find(name).map_err(|line| Failed { line, code: 2 })?],
        None => lessons(),
    };
    let runs = Runs::new(global.data.clone());
    let path = arguments.report.clone().unwrap_or_else(|| new_report(&runs, &chosen));
    // Whoever cannot have a report learns it before anything runs, and before anybody has predicted anything.
    reserve(&path)?;
    let setting = Setting { program: None, runs, seed: arguments.seed, without_fault: arguments.without_fault };
    let quiet = arguments.check || global.json;
    let mut session = Session {
        setting,
        interrupts: interrupts()?,
        asker: if quiet || arguments.yes { None } else { Some(Asker::new()) },
        quiet,
    };
    let mut reports = Vec::new();
    for lesson in &chosen {
        match session.teach(lesson).await {
            Ok(report) => reports.push(report),
            Err(failed) => {
                // Half a session is no report.
                drop(std::fs::remove_file(&path));
                return Err(failed);
            }
        }
    }
    let report = LessonsReport::new(reports);
    std::fs::write(&path, serde_json::to_vec_pretty(&report)?).map_err(|error| unwritten(&path, &error))?;
    if global.json {
        say_json(&report)?;
        return Ok(ExitCode::from(report.exit_code()));
    }
    if arguments.check || arguments.all {
        for line in screen::table(&chosen, &report, &style()) {
            say(line);
        }
    }
    say(format!("report: {}", path.display()));
    if arguments.check || arguments.all {
        say(screen::last_line(&report));
    }
    Ok(ExitCode::from(report.exit_code()))
}

fn list(global: &Global) -> Outcome {
    let lessons = lessons();
    if global.json {
        let names: Vec<&str> = lessons.iter().map(|lesson| lesson.name).collect();
        say_json(&names)?;
        return Ok(ExitCode::SUCCESS);
    }
    for line in screen::list(&lessons, &style()) {
        say(line);
    }
    Ok(ExitCode::SUCCESS)
}

fn new_report(runs: &Runs, chosen: &[Lesson]) -> PathBuf {
    let name = if let [one] = chosen { one.name } else { "all" };
    runs.path().join(format!("lesson-{name}-{}.json", clock::now().0))
}

fn unwritten(path: &Path, error: &std::io::Error) -> Failed {
    Failed { line: format!("the report {} cannot be written: {error}", path.display()), code: 2 }
}

fn reserve(path: &Path) -> Result<(), Failed> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(|error| unwritten(path, &error))?;
    }
    std::fs::write(path, "").map_err(|error| unwritten(path, &error))
}

/// Somebody who goes through lessons.
struct Session {
    setting: Setting,
    interrupts: watch::Receiver<u32>,
    asker: Option<Asker>,
    quiet: bool,
}

impl Session {
    async fn teach(&mut self, lesson: &Lesson) -> Result<LessonReport, Failed> {
        self.show(|| screen::set_up(lesson, &style()));
        let predicted = self.predict().await?;
        let mut report = LessonReport::new(lesson, predicted);
        let mut asked = false;
        for variant in lesson.variants() {
            if variant.turn > Turn::Harm && !asked {
                asked = true;
                self.show(|| with_space(screen::question(lesson, &style())));
                self.go_on("Talk about it, then press Enter for what mends it.").await?;
            }
            let own = predicted.as_ref().filter(|_| *variant == lesson.broken);
            if !self.one(lesson, variant, own, &mut report).await? {
                return Ok(report);
            }
        }
        self.show(|| with_space(screen::answer(lesson, &style())));
        Ok(report)
    }

    /// Runs a variant and shows it. Says whether there is any use in going on.
    async fn one(
        &mut self,
        lesson: &Lesson,
        variant: &Variant,
        predicted: Option<&Prediction>,
        report: &mut LessonReport,
    ) -> Result<bool, Failed> {
        self.show(|| with_space(screen::heading(lesson, variant, &style())));
        if *variant != lesson.broken {
            self.show(|| screen::switches(lesson, variant, &style()));
        }
        let run = match run_variant(lesson, variant, &self.setting, predicted, self.interrupts.clone()).await {
            Ok(run) => run,
            Err(interrupted @ NotRun::Interrupted(_)) => {
                self.show(|| vec![String::new()]);
                return Err(Failed { line: interrupted.to_string(), code: 130 });
            }
            Err(error) => {
                let line = format!("{}, {}: {error}", lesson.name, variant.name);
                self.show(|| vec![format!("INVALID: {line}")]);
                report.not_run = Some(line);
                return Ok(false);
            }
        };
        self.show(|| screen::columns(lesson, &run, &style()));
        self.go_on("Press Enter for the diagram.").await?;
        self.show(|| with_space(screen::picture(&run, &style())));
        self.show(|| with_space(screen::judged(&run, predicted, &style())));
        report.runs.push(run.report);
        Ok(true)
    }

    fn show(&self, lines: impl FnOnce() -> Vec<String>) {
        if !self.quiet {
            lines().iter().for_each(say);
        }
    }

    async fn predict(&mut self) -> Result<Option<Prediction>, Failed> {
        match &mut self.asker {
            Some(asker) => asker.predict(&mut self.interrupts).await.map(Some),
            None => Ok(None),
        }
    }

    async fn go_on(&mut self, text: &str) -> Result<(), Failed> {
        match &mut self.asker {
            Some(asker) => asker.go_on(text, &mut self.interrupts).await,
            None => Ok(()),
        }
    }
}

fn with_space(lines: Vec<String>) -> Vec<String> {
    std::iter::once(String::new()).chain(lines).collect()
}
