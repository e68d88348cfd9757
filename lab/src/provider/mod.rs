//! The payment provider: somebody else's system, with an honest ledger of what it did.
//!
//! It is never killed by a lesson: nobody can restart somebody else's system. Its ledger is a counterfoil store too, so
//! what it says it charged, it charged.

use std::error::Error;
use std::path::{Path, PathBuf};

use counterfoil::{Execution, OpenError, Store, Table, TableError};
use tokio::net::TcpListener;

use crate::process::report::ReportLine;
use crate::process::sys::ProcessIdentity;
use crate::process::tether::{self, Gate};
use crate::rules::ids::{Attempt, Endpoint};
use crate::rules::message::{ProviderCall, ProviderReply};
use crate::rules::record::{Charge, EffectRow, Receipt, Slot};
use crate::wire::provider::{Handler, serve};

/// The hidden command that runs it. It takes one argument: [`ProviderArguments`] as JSON.
pub const COMMAND: &str = "provider";

const CHARGES: Table<u64, Charge> = Table::new("charges");
/// The first charge of each identity.
const IDENTITIES: Table<String, u64> = Table::new("identities");

/// What the provider has to know.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub struct ProviderArguments {
    /// The run.
    pub run: String,
    /// Who starts it.
    pub parent: ProcessIdentity,
    /// Its disk.
    pub disk: PathBuf,
}

/// The ledger.
#[derive(Debug, Clone)]
pub struct Ledger {
    store: Store,
}

impl Ledger {
    /// Opens it, or makes a new one.
    ///
    /// # Errors
    ///
    /// If the store cannot be opened.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        Ok(Self { store: Store::builder().table(&CHARGES).table(&IDENTITIES).open(path)? })
    }

    /// Does what it is asked. It blocks until that is durable.
    #[must_use]
    pub fn answer(&self, call: ProviderCall) -> ProviderReply {
        let done = match call {
            ProviderCall::LookUp { identity } => {
                let found: Result<_, TableError> = self.store.read(|view| {
                    let first = view.table(&IDENTITIES)?.get(&identity.0)?;
                    first.map_or(Ok(None), |number| {
                        Ok(view.table(&CHARGES)?.get(number)?.map(|charge| (number, charge)))
                    })
                });
                return match found {
                    Ok(Some((number, charge))) => ProviderReply::ChargedBefore(receipt(number, &charge.row)),
                    Ok(None) => ProviderReply::NotFound,
                    Err(error) => failed(&error, true),
                };
            }
            ProviderCall::Pay { row, identity, compares_amounts, deduplicate } => {
                self.store.write(move |tx| Ok(charge(tx, row, identity, compares_amounts, deduplicate)?))
            }
        };
        match done {
            Ok(written) => written.value,
            Err(error) => {
                let certain = error.execution() == Execution::NotExecuted;
                failed(&error, certain)
            }
        }
    }

    /// Every charge, in order.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    pub fn charges(&self) -> Result<Vec<Charge>, TableError> {
        self.store.read(|view| view.table(&CHARGES)?.range(..)?.map(|row| row.map(|(_, charge)| charge)).collect())
    }
}

/// Look, compare and charge in one write.
fn charge(
    tx: &counterfoil::Tx<'_>,
    row: EffectRow,
    identity: Option<Slot>,
    compares_amounts: bool,
    deduplicate: bool,
) -> Result<ProviderReply, TableError> {
    let (charges, identities) = (tx.table(&CHARGES)?, tx.table(&IDENTITIES)?);
    let before = identity.as_ref().map_or(Ok(None), |identity| identities.get(&identity.0))?;
    if deduplicate
        && let Some(number) = before
        && let Some(held) = charges.get(number)?
    {
        let other = compares_amounts && held.row.amount != row.amount;
        return Ok(if other {
            ProviderReply::Mismatch { held: held.row.amount }
        } else {
            ProviderReply::ChargedBefore(receipt(number, &held.row))
        });
    }
    let number = charges.last()?.map_or(1, |(last, _)| last + 1);
    if let Some(identity) = &identity
        && before.is_none()
    {
        identities.put(&identity.0, &number)?;
    }
    let charged = receipt(number, &row);
    charges.put(number, &Charge { row, identity })?;
    Ok(ProviderReply::Charged(charged))
}

fn receipt(number: u64, row: &EffectRow) -> Receipt {
    let EffectRow { key, amount, attempt, .. } = row;
    let attempt = Attempt(attempt.0);
    Receipt { key: key.clone(), amount: *amount, attempt, by: Endpoint::Provider, position: Some(number) }
}

fn failed(error: &dyn Error, certain: bool) -> ProviderReply {
    eprintln!("ledger: {error}");
    ProviderReply::Failed { certain }
}

#[derive(Debug, Clone)]
struct Server {
    ledger: Ledger,
}

impl Handler for Server {
    async fn answer(&self, call: ProviderCall) -> ProviderReply {
        let ledger = self.ledger.clone();
        // It goes on when the caller goes away: a charge is not undone by hanging up.
        let done = tokio::task::spawn_blocking(move || ledger.answer(call)).await;
        done.unwrap_or(ProviderReply::Failed { certain: false })
    }

    async fn ledger(&self) -> Result<Vec<Charge>, String> {
        let ledger = self.ledger.clone();
        let read = tokio::task::spawn_blocking(move || ledger.charges().map_err(|error| error.to_string())).await;
        read.map_err(|error| error.to_string())?
    }
}

static GATE: std::sync::OnceLock<Gate> = std::sync::OnceLock::new();

/// Runs the provider until its supervisor ends it or is gone.
///
/// # Errors
///
/// If it cannot start.
pub fn run(arguments: ProviderArguments) -> Result<(), Box<dyn Error>> {
    let ProviderArguments { run, parent, disk } = arguments;
    let ledger = Ledger::open(&disk)?;
    let closing = ledger.store.clone();
    tether::tie(
        parent,
        GATE.get_or_init(Gate::default),
        || {},
        move || {
            let closed = closing.close().inspect_err(|error| eprintln!("closing the ledger: {error}"));
            std::process::exit(i32::from(closed.is_err()));
        },
    )?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async move {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let (identity, port) = (ProcessIdentity::own()?, listener.local_addr()?.port());
        ReportLine::Ready { run: run.clone(), identity, port, disk: None }.tell();
        serve(listener, &run, Server { ledger }, std::future::pending()).await?;
        Ok(())
    })
}
