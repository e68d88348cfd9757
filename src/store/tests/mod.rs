//! What needs the store's insides: records that no call of this version writes.

mod claims;
mod damage;
mod detached;
mod golden_rows;

use crate::testing::TestBed;

use super::run::Run;
use super::{Store, StoreBuilder};

fn bed(build: impl Fn() -> StoreBuilder + 'static) -> TestBed {
    TestBed::new(build).expect("the store opens")
}

fn run(store: &Store) -> &Run {
    &store.run
}
