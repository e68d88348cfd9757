//! Counterfoil.
#[cfg(feature = "store")]
mod base;
#[cfg(feature = "store")]
mod disk;
#[cfg(feature = "store")]
mod log;
