//! Frames that are gone, or of another time.

use crate::crash::damage;
use crate::crash::harness::limits;

#[test]
fn a_proven_frame_that_reads_as_zeros_is_noticed() {
    damage::lost_frames(&limits()).unwrap();
}

#[test]
fn a_frame_of_another_epoch_at_the_same_place_is_not_a_frame() {
    damage::frame_of_another_epoch(&limits()).unwrap();
}

#[test]
fn what_a_torn_batch_left_never_follows_another_operation() {
    damage::torn_batch(&limits()).unwrap();
}
