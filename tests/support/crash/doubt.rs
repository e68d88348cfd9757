//! A store whose clock is in doubt, so that nothing is swept.

use std::time::Duration;

use counterfoil::Limits;
use counterfoil::testing::{SimDisk, WALL_AT_START};

use crate::crash::harness::{Process, Told};
use crate::crash::script::{Kind, Op};

const TEN_YEARS: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// A receipt that was forgotten and not swept gives its key to the next one, and everything that belonged to it goes.
pub(crate) fn a_receipt_that_is_replaced_before_it_is_swept(limits: &Limits) -> Result<(), String> {
    let mut process = Process::with(SimDisk::new(), limits.clone(), Told::default());
    process.open().map_err(|error| error.to_string())?;
    process.clock.set_wall(WALL_AT_START.saturating_add(TEN_YEARS));
    for id in 1..=3 {
        process.clock.advance(Duration::from_millis(1));
        process.write(Op { id, kind: Kind::Fleeting }).map_err(|stopped| format!("{stopped:?}"))?;
        let report = process.store().verify().map_err(|error| error.to_string())?;
        if !report.is_clean() {
            return Err(format!("verify found {:?}", report.problems));
        }
    }
    if process.store().stats().swept > 0 {
        return Err("something was swept".to_owned());
    }
    process.close().map_err(|error| error.to_string())
}
