//! Benchmarks of Counterfoil beside its peers.
