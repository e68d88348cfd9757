//! The payment provider: somebody else's system, with an honest ledger of what it did.
//!
//! It is never killed by a lesson: nobody can restart somebody else's system. Its ledger is a counterfoil store too, so
//! what it says it charged, it charged.

use std::error::Error;
use std::path::{Path, PathBuf};

use counterfoil::{Execution, OpenError, Store, Table, TableError, Tx};
use tokio::net::TcpListener;

use crate::process::report::ReportLine;
use crate::process::sys::ProcessIdentity;
use crate::process::tether::{self, Gate};
use crate::rules::message::{ProviderCall, ProviderReply};
use crate::rules::provider::decide;
use crate::rules::record::{Charge, Slot};
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

    /// Does what it is asked. It blocks until that is durable; looking and charging are one write.
    #[must_use]
    pub fn answer(&self, call: ProviderCall) -> ProviderReply {
        match self.store.write(move |tx| Ok(answer(tx, call)?)) {
            Ok(written) => written.value,
            Err(error) => {
                eprintln!("ledger: {error}");
                ProviderReply::Failed { certain: error.execution() == Execution::NotExecuted }
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

/// What the rules decide, on the ledger as it stands in this write. A look-up changes nothing.
fn answer(tx: &Tx<'_>, call: ProviderCall) -> Result<ProviderReply, TableError> {
    let (charges, identities) = (tx.table(&CHARGES)?, tx.table(&IDENTITIES)?);
    let mut broken = None;
    let mut first = |identity: &Slot| {
        let number = identities.get(&identity.0);
        let charge = number.and_then(|number| number.map_or(Ok(None), |number| charges.get(number)));
        charge.unwrap_or_else(|error| {
            broken = Some(error);
            None
        })
    };
    let (reply, charge) = decide(call, &mut first);
    if let Some(error) = broken {
        return Err(error);
    }
    if let Some(charge) = charge {
        let number = charges.last()?.map_or(1, |(last, _)| last + 1);
        if let Some(identity) = &charge.identity
            && !identities.contains(&identity.0)?
        {
            identities.put(&identity.0, &number)?;
        }
        charges.put(number, &charge)?;
    }
    Ok(reply)
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
