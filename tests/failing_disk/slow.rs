//! A disk that takes its time.

use crate::crash::harness::limits;
use crate::crash::threads;

#[test]
fn what_is_answered_while_a_checkpoint_takes_long_is_there_and_stays() {
    threads::a_checkpoint_that_takes_long(&limits()).unwrap();
}
