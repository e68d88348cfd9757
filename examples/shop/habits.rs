//! Three ways to answer a request once: Counterfoil's, and two that people have instead.
//!
//! All three use the same store, the same tables and writes that are as durable as each other. They differ in one
//! thing: where the receipt is when the process dies.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};

use counterfoil::{Decision, Error, Failure, Reply, Store, Table, Tx};
use serde::{Deserialize, Serialize};

use crate::protocol::{Answer, OrderRequest};
use crate::shop::{CREATE_ORDER, create_order};

/// Receipts of the habit that writes them separately.
pub(crate) const SEPARATE_RECEIPTS: Table<String, Kept> = Table::new("separate-receipts");

/// Where the receipt is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Habit {
    /// In the same write as the order.
    Counterfoil,
    /// In a second transaction, after the order.
    SecondTransaction,
    /// In the memory of the process.
    InMemory,
}

impl Habit {
    pub(crate) const ALL: [Self; 3] = [Self::Counterfoil, Self::SecondTransaction, Self::InMemory];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Counterfoil => "counterfoil",
            Self::SecondTransaction => "second-transaction",
            Self::InMemory => "in-memory",
        }
    }
}

impl fmt::Display for Habit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Habit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|habit| habit.name() == text).ok_or_else(|| format!("no habit is called {text:?}"))
    }
}

/// What the two habits keep of an answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Kept {
    request: String,
    status: u16,
    body: String,
}

/// Answers requests in one of the three ways.
#[derive(Debug)]
pub(crate) struct Desk {
    store: Store,
    habit: Habit,
    in_memory: Mutex<HashMap<String, Kept>>,
}

impl Desk {
    pub(crate) fn new(store: Store, habit: Habit) -> Self {
        Self { store, habit, in_memory: Mutex::default() }
    }

    pub(crate) fn answer(&self, request: OrderRequest) -> Answer {
        let id = request.id;
        let answered = match self.habit {
            Habit::Counterfoil => self.with_counterfoil(request),
            Habit::SecondTransaction | Habit::InMemory => self.by_habit(request),
        };
        answered.unwrap_or_else(|error| refusal(id, &error))
    }

    /// The receipt and the order in one write.
    fn with_counterfoil(&self, request: OrderRequest) -> Result<Answer, Error> {
        let OrderRequest { id, customer, key, attempt, body } = request;
        let operation = CREATE_ORDER.request("shop", &customer, key)?.json_text(&body)?.attempt(attempt);
        let receipt = self.store.execute(operation, move |tx| create(tx, &customer, &body))?;
        let reply = receipt.reply();
        Ok(Answer { id, status: reply.status(), replayed: receipt.is_replayed(), body: text(reply) })
    }

    /// Look for a receipt, write the order, then keep a receipt. It reads well, it passes every test that does not
    /// kill the process, and what is wrong with it is the time between its last two steps.
    fn by_habit(&self, request: OrderRequest) -> Result<Answer, Error> {
        let OrderRequest { id, customer, key, body, .. } = request;
        let slot = format!("{customer}/{key}");
        if let Some(kept) = self.look_up(&slot)? {
            return Ok(if kept.request == body {
                Answer { id, status: kept.status, replayed: true, body: kept.body }
            } else {
                Answer { id, status: 422, replayed: false, body: "the key was used before".to_owned() }
            });
        }
        let wanted = body.clone();
        let made = self.store.write(move |tx| create(tx, &customer, &wanted))?;
        let (Decision::Reply(reply) | Decision::Reject(reply) | Decision::Accept(reply)) = made.value;
        let (status, answer) = (reply.status(), text(&reply));
        self.keep(slot, Kept { request: body, status, body: answer.clone() })?;
        Ok(Answer { id, status, replayed: false, body: answer })
    }

    fn look_up(&self, slot: &str) -> Result<Option<Kept>, Error> {
        if self.habit == Habit::InMemory {
            let in_memory = self.in_memory.lock().unwrap_or_else(PoisonError::into_inner);
            return Ok(in_memory.get(slot).cloned());
        }
        let kept = self.store.read(|view| view.table(&SEPARATE_RECEIPTS)?.get(slot));
        kept.map_err(|error| Error::Corrupt(error.to_string()))
    }

    fn keep(&self, slot: String, kept: Kept) -> Result<(), Error> {
        if self.habit == Habit::InMemory {
            self.in_memory.lock().unwrap_or_else(PoisonError::into_inner).insert(slot, kept);
            return Ok(());
        }
        self.store.write(move |tx| Ok(tx.table(&SEPARATE_RECEIPTS)?.put(&slot, &kept)?)).map(drop)
    }
}

fn create(tx: &Tx<'_>, customer: &str, body: &str) -> Result<Decision, Failure> {
    create_order(tx, customer, serde_json::from_str(body)?)
}

fn text(reply: &Reply) -> String {
    String::from_utf8_lossy(reply.body()).into_owned()
}

/// An error as a status: the store says by itself which of them are worth another attempt.
fn refusal(id: u64, error: &Error) -> Answer {
    let status = if matches!(error, Error::Conflict { .. }) {
        422
    } else if error.is_retryable() {
        503
    } else {
        500
    };
    Answer { id, status, replayed: false, body: error.to_string() }
}
