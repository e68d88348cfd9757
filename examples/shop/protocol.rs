//! What the two processes say to each other: one JSON object a line, over the child's standard input and output.

use serde::{Deserialize, Serialize};

/// To the service.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum ToService {
    /// A client's request.
    CreateOrder(OrderRequest),
    /// From the audit: which of these intents have an order? It only reads.
    FindOrders { intents: Vec<u64> },
}

/// A request to create an order.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct OrderRequest {
    /// Of this attempt, to find who waits for the answer.
    pub(crate) id: u64,
    /// Who is asking: a real service takes it from the session.
    pub(crate) customer: String,
    /// The same for every attempt at one order.
    pub(crate) key: String,
    /// Which attempt of the client it is.
    pub(crate) attempt: u32,
    /// JSON text, passed on as it is.
    pub(crate) body: String,
}

/// From the service.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum FromService {
    /// The store is open. The first line that a service sends.
    Ready { open_ms: f64 },
    /// The answer to a request.
    Answer(Answer),
    /// The answer to [`ToService::FindOrders`].
    FoundOrders { intents: Vec<u64> },
    /// The service cannot go on.
    Failed { message: String },
}

/// The answer to a request.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Answer {
    pub(crate) id: u64,
    /// As in HTTP: 201 created, 409 rejected, 422 the key belongs to another request, 503 try again.
    pub(crate) status: u16,
    /// It was read from a receipt.
    pub(crate) replayed: bool,
    pub(crate) body: String,
}

impl Answer {
    /// An order was made, now and not before.
    pub(crate) const fn is_fresh_order(&self) -> bool {
        self.status == 201 && !self.replayed
    }
}
