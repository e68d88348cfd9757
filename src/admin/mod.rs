//! What an operator asks of a store, whether the tool has it open itself or asks the service that has.
//!
//! [`run`] answers one [`Request`] with [`Answer`]s: lines, progress, and how it ended. [`serve`](crate::Store::serve_admin)
//! does the same for whoever connects to the store's local socket.

mod request;
mod run;
#[cfg(unix)]
mod server;

pub use request::{Answer, Request};
pub use run::run;
#[cfg(unix)]
pub use server::{AdminServer, ask};
