//! The rules, in memory: every placement's steps, every failure, every lesson's interleaving, and all interleavings of
//! small runs.

mod disk;
mod exhaustive;
mod lessons;
mod steps;
mod world;
