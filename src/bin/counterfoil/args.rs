//! What may be said on the command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use counterfoil::admin::Request;

/// Looks into a store, and does what an operator has to do.
///
/// It works on a store that nobody has open, and through a local socket on one that a service has open which called
/// `serve_admin`.
#[derive(Debug, Parser)]
#[command(version, about, after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// The store's directory.
    #[arg(short, long, env = "COUNTERFOIL_STORE", default_value = ".", global = true)]
    pub(crate) store: PathBuf,
    /// Print JSON, one object to a line.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const AFTER_HELP: &str = "\
Examples:
  counterfoil --store /var/lib/shop stat
  counterfoil --store /var/lib/shop explain order-7
  counterfoil --store /var/lib/shop log --follow --json
  counterfoil --store /var/lib/shop erase --tenant acme --actor alice --reason 'asked to' --by ann

Exit codes: 0 done; 1 looked, and something is wrong or not there (verify, get, explain); 2 it could not be done.";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make an empty store.
    Init,
    /// What the store is doing: counts, times, sizes.
    Stat,
    /// Check everything that is stored, and change nothing.
    Verify,
    /// Entries of the log, oldest first.
    Log {
        /// Only those after this position, such as 3:1042.
        #[arg(long)]
        from: Option<String>,
        /// Go on with new ones as they become durable.
        #[arg(short, long)]
        follow: bool,
        /// At most so many.
        #[arg(short = 'n', long)]
        limit: Option<u64>,
    },
    /// Receipts, and what a retry of each is answered now.
    Receipts {
        #[command(flatten)]
        scope: Scope,
        /// At most so many.
        #[arg(short = 'n', long, default_value_t = 100)]
        limit: u64,
    },
    /// The whole life of a key: executions, replays, conflicts, expiry, and why a retry is answered what it is.
    Explain {
        /// The key as text, or 0x and hexadecimal digits.
        key: String,
        #[command(flatten)]
        scope: Scope,
    },
    /// The tables: rows, types, versions.
    Tables,
    /// One row of a table.
    Get {
        /// The table.
        table: String,
        /// Its key: text, a number, JSON such as '["a", 7]', or 0x and the encoded key.
        key: String,
    },
    /// Rows of a table in the order of their keys.
    Scan {
        /// The table.
        table: String,
        /// From this key on.
        #[arg(long)]
        from: Option<String>,
        /// At most so many.
        #[arg(short = 'n', long, default_value_t = 100)]
        limit: u64,
    },
    /// What the receipts of each tenant take.
    Usage,
    /// Delete now what has expired; a store does it by itself as well.
    Sweep,
    /// Rewrite the state file, so that it holds what is living and little more.
    Compact,
    /// Take what was erased, and the log's history, out of every file.
    Purge,
    /// Erase what an operation, an actor or a tenant said; it stays known that it was done.
    Erase {
        /// Whose.
        #[arg(long)]
        tenant: String,
        /// Only this actor's.
        #[arg(long)]
        actor: Option<String>,
        /// Only the operation of this type under --key.
        #[arg(long, requires = "key", requires = "actor")]
        operation: Option<String>,
        /// The key of the operation.
        #[arg(long, requires = "operation")]
        key: Option<String>,
        /// Who decided it.
        #[arg(long)]
        by: Option<String>,
        /// Why; it stays in the log.
        #[arg(long)]
        reason: String,
    },
    /// The erasures that were decided.
    Erasures,
    /// Everything as JSON lines.
    Export {
        /// Of what.
        #[arg(value_parser = ["receipts", "log", "tables"])]
        what: String,
    },
    /// The clock.
    Clock {
        #[command(subcommand)]
        command: ClockCommand,
    },
    /// How fast this machine's disk lets a store be: durable operations in a directory of its own, removed afterwards.
    Bench {
        /// For so long.
        #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=600))]
        seconds: u64,
        /// So many at once.
        #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=256))]
        clients: u32,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ClockCommand {
    /// Say that the wall clock is right: what is due by it is forgotten, and deletion goes on.
    Accept {
        /// Who decided it.
        #[arg(long)]
        by: Option<String>,
        /// Why; it stays in the log.
        #[arg(long)]
        reason: String,
    },
}

/// Whose.
#[derive(Clone, Debug, Args)]
pub(crate) struct Scope {
    /// Only this tenant's.
    #[arg(long)]
    tenant: Option<String>,
    /// Only this actor's.
    #[arg(long)]
    actor: Option<String>,
    /// Only of this operation type.
    #[arg(long)]
    operation: Option<String>,
}

impl Command {
    /// What it asks of an open store.
    pub(crate) fn request(&self) -> Option<Request> {
        Some(match self {
            Self::Init | Self::Bench { .. } => return None,
            Self::Stat => Request::Stat,
            Self::Verify => Request::Verify,
            Self::Log { from, follow, limit } => Request::Log { from: from.clone(), follow: *follow, limit: *limit },
            Self::Receipts { scope, limit } => {
                let Scope { tenant, actor, operation } = scope.clone();
                Request::Receipts { tenant, actor, operation, limit: Some(*limit) }
            }
            Self::Explain { key, scope } => {
                let Scope { tenant, actor, operation } = scope.clone();
                Request::Explain { key: key.clone(), tenant, actor, operation }
            }
            Self::Tables => Request::Tables,
            Self::Get { table, key } => Request::Get { table: table.clone(), key: key.clone() },
            Self::Scan { table, from, limit } => {
                Request::Scan { table: table.clone(), from: from.clone(), limit: Some(*limit) }
            }
            Self::Usage => Request::Usage,
            Self::Sweep => Request::Sweep,
            Self::Compact => Request::Compact,
            Self::Purge => Request::Purge,
            Self::Erase { tenant, actor, operation, key, by, reason } => Request::Erase {
                tenant: tenant.clone(),
                actor: actor.clone(),
                operation: operation.clone(),
                key: key.clone(),
                by: by.clone(),
                reason: reason.clone(),
            },
            Self::Erasures => Request::Erasures,
            Self::Export { what } => Request::Export { what: what.clone() },
            Self::Clock { command: ClockCommand::Accept { by, reason } } => {
                Request::AcceptClock { by: by.clone(), reason: reason.clone() }
            }
        })
    }
}
