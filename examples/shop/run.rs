//! One run: clients, service, kills and audit, for one habit.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::audit::audit;
use crate::client::{Outcome, Told, run_errands};
use crate::habits::Habit;
use crate::link::{Event, Killed, Link};
use crate::plan::{CLIENTS, Plan};
use crate::process::Launcher;
use crate::progress::Meter;
use crate::verdict::{Audit, KillReport};

/// One run, counted.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RunReport {
    pub(crate) habit: Habit,
    pub(crate) logical_orders: u64,
    pub(crate) attempts: u64,
    /// Settled as created.
    pub(crate) created: u64,
    pub(crate) replayed: u64,
    pub(crate) rejected: u64,
    pub(crate) conflicts: u64,
    pub(crate) unknown_then_settled: u64,
    pub(crate) seconds: f64,
    pub(crate) audit: Audit,
    pub(crate) kills: Vec<KillReport>,
}

/// Runs the plan against a service that keeps its receipts in this way.
pub(crate) fn run(
    plan: &Arc<Plan>,
    habit: Habit,
    store: &Path,
    meter: &mut Meter,
) -> Result<RunReport, Box<dyn Error>> {
    let started = Instant::now();
    let launcher = Launcher { habit, store: store.to_path_buf(), stock: plan.stock.clone() };
    let link = Link::new(Arc::clone(plan), CLIENTS);
    link.connect(launcher.start()?);

    let next = AtomicUsize::new(0);
    let (outcomes, supervised) = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(|| run_errands(plan, &link, &next))).collect();
        let supervised = supervise(&link, &launcher, meter);
        if let Err(error) = &supervised {
            link.fail(error.to_string());
        }
        let outcomes: Vec<Outcome> =
            clients.into_iter().flat_map(|client| client.join().expect("clients do not panic")).collect();
        (outcomes, supervised.map_err(|error| error.to_string()))
    });
    let kills = supervised?;
    let mut process = link.disconnect().ok_or("the service is not there any more")?;
    process.wait()?;
    let audit = audit(store, plan, &outcomes)?;
    let mut report = count(habit, plan, &outcomes, audit, kills);
    report.seconds = started.elapsed().as_secs_f64();
    Ok(report)
}

/// Brings the service back after each kill, until the clients are done.
fn supervise(link: &Arc<Link>, launcher: &Launcher, meter: &mut Meter) -> Result<Vec<KillReport>, Box<dyn Error>> {
    let mut kills = Vec::new();
    loop {
        let (event, settled) = link.next_event(Duration::from_millis(100));
        meter.show(settled, kills.len());
        match event {
            Event::Nothing => {}
            Event::Killed(killed) => {
                kills.push(restart(link, launcher, killed)?);
                meter.show(settled, kills.len());
            }
            Event::Failed(message) => return Err(message.into()),
            Event::Finished => return Ok(kills),
        }
    }
}

/// Starts the service again and, before any client may ask again, looks which of the operations that were in flight
/// had been executed.
fn restart(link: &Arc<Link>, launcher: &Launcher, killed: Killed) -> Result<KillReport, Box<dyn Error>> {
    let mut service = launcher.start()?;
    let in_flight = killed.in_flight.len();
    let executed_unanswered = service.find_orders(killed.in_flight)?.len();
    let report = KillReport {
        after_answers: killed.answers,
        in_flight,
        executed_unanswered,
        recovery_ms: service.ready_after.as_secs_f64() * 1000.0,
        store_open_ms: service.open_ms,
    };
    link.connect(service);
    Ok(report)
}

fn count(habit: Habit, plan: &Plan, outcomes: &[Outcome], audit: Audit, kills: Vec<KillReport>) -> RunReport {
    let those = |which: &dyn Fn(&Outcome) -> bool| outcomes.iter().filter(|outcome| which(outcome)).count() as u64;
    RunReport {
        habit,
        logical_orders: plan.errands.len() as u64,
        attempts: outcomes.iter().map(|outcome| u64::from(outcome.attempts)).sum(),
        created: those(&|outcome| outcome.told == Told::Created),
        replayed: those(&|outcome| outcome.replayed),
        rejected: those(&|outcome| outcome.told == Told::Rejected),
        conflicts: those(&|outcome| outcome.told == Told::Conflict),
        unknown_then_settled: those(&|outcome| outcome.was_unknown && !matches!(outcome.told, Told::Fault(_))),
        seconds: 0.0,
        audit,
        kills,
    }
}
