//! The plot: for each scenario what part of the operations was useful over time, one line for each policy.

use std::fmt::{Error, Result, Write};
use std::time::Duration;

use crate::report::Run;
use crate::simulation::policy::Policy;
use crate::simulation::scenario::{BEGINS, ENDS, HEALTHY, Scenario};
use crate::simulation::trace::SLICE;

const WIDTH: f64 = 520.0;
const HEIGHT: f64 = 150.0;
const LEFT: f64 = 50.0;
const TOP: f64 = 60.0;
const GAP: f64 = 60.0;

const fn colour(policy: Policy) -> &'static str {
    match policy {
        Policy::None => "#888888",
        Policy::ThreeLayers => "#c0392b",
        Policy::Jittered => "#e08e0b",
        Policy::Counterfoil => "#1f6fb2",
    }
}

pub(crate) fn svg(runs: &[Run]) -> std::result::Result<String, Error> {
    let panels = f64::from(u32::try_from(Scenario::ALL.len()).expect("few"));
    let (width, height) = (LEFT + WIDTH + 20.0, TOP + panels * (HEIGHT + GAP));
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"18\" font-size=\"14\">Operations answered in time, of those begun</text>\n"
    );
    for (place, policy) in (0..).zip(Policy::ALL) {
        let x = LEFT + 130.0 * f64::from(place);
        let colour = colour(policy);
        writeln!(
            svg,
            "<rect x=\"{x}\" y=\"30\" width=\"14\" height=\"4\" fill=\"{colour}\"/><text x=\"{}\" y=\"37\">{}</text>",
            x + 20.0,
            policy.name()
        )?;
    }
    for (panel, scenario) in (0..).zip(Scenario::ALL) {
        let top = TOP + f64::from(panel) * (HEIGHT + GAP);
        axes(&mut svg, scenario, top)?;
        for run in runs.iter().filter(|run| run.scenario == scenario) {
            line(&mut svg, run, top)?;
        }
    }
    svg.push_str("</svg>\n");
    Ok(svg)
}

fn x(at: Duration) -> f64 {
    LEFT + WIDTH * at.as_secs_f64() / ENDS.as_secs_f64()
}

fn axes(svg: &mut String, scenario: Scenario, top: f64) -> Result {
    let bottom = top + HEIGHT;
    let (from, to) = (x(BEGINS), x(HEALTHY));
    writeln!(
        svg,
        "<rect x=\"{from:.1}\" y=\"{top}\" width=\"{:.1}\" height=\"{HEIGHT}\" fill=\"#f3e6e6\"/>\n\
         <rect x=\"{LEFT}\" y=\"{top}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"none\" stroke=\"#999\"/>\n\
         <text x=\"{LEFT}\" y=\"{:.1}\" font-weight=\"bold\">{}</text>\n\
         <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">100 %</text>\n\
         <text x=\"{:.1}\" y=\"{bottom:.1}\" text-anchor=\"end\">0</text>",
        to - from,
        top - 6.0,
        scenario.name(),
        LEFT - 6.0,
        top + 10.0,
        LEFT - 6.0,
    )?;
    for seconds in (0..=ENDS.as_secs()).step_by(10) {
        let at = x(Duration::from_secs(seconds));
        writeln!(svg, "<text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{seconds} s</text>", bottom + 16.0)?;
    }
    Ok(())
}

fn line(svg: &mut String, run: &Run, top: f64) -> Result {
    // A second at a time: a quarter of one is mostly noise.
    let seconds = (0..ENDS.as_secs() - 1).map(Duration::from_secs);
    let points = seconds.map(|from| {
        let goodput = run.trace.goodput(from, from + SLICE * 4);
        format!("{:.1},{:.1}", x(from + SLICE * 2), top + HEIGHT * (1.0 - goodput))
    });
    let points: Vec<_> = points.collect();
    let colour = colour(run.policy);
    writeln!(svg, "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.8\"/>", points.join(" "))
}
