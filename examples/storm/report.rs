//! The table.

use std::fmt::{Error, Write};

use crate::simulation::policy::Policy;
use crate::simulation::scenario::Scenario;
use crate::simulation::trace::Trace;

/// One policy in one scenario.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) scenario: Scenario,
    pub(crate) policy: Policy,
    pub(crate) trace: Trace,
}

pub(crate) fn table(runs: &[Run]) -> Result<String, Error> {
    let mut text = String::new();
    let mut last = None;
    for Run { scenario, policy, trace } in runs {
        if last.replace(*scenario) != Some(*scenario) {
            writeln!(
                text,
                "\n{:<18}{:>18} {:>9} {:>10} {:>7} {:>9}",
                scenario.name(),
                "useful",
                "attempts",
                "abandoned",
                "late",
                "recovers"
            )?;
        }
        let useful = format!("{} of {}", trace.useful, trace.operations);
        let late = percent(trace.goodput_late() / trace.goodput_before());
        let recovers =
            trace.recovered_after().map_or("never".to_owned(), |after| format!("{:.2} s", after.as_secs_f64()));
        writeln!(
            text,
            "  {:<16}{useful:>18} {:>9.2} {:>10} {late:>7} {recovers:>9}",
            policy.name(),
            trace.amplification(),
            percent(trace.abandoned_part()),
        )?;
    }
    Ok(text)
}

fn percent(part: f64) -> String {
    format!("{:.0} %", part * 100.0)
}
