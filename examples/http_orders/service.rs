//! The service. Each outcome of the store has its status:
//!
//! | outcome | status |
//! |---|---|
//! | a receipt, new or replayed | that of the reply; a replay has `Idempotency-Replayed: true` |
//! | no key, a malformed one, a malformed deadline | 400 |
//! | in progress | 409 with `Retry-After` |
//! | done, and the reply is no longer kept | 410 |
//! | the key was used with another request | 422 |
//! | the queue, or this tenant's share of it, is full | 429 with `Retry-After` |
//! | not executed for another reason that may pass, the caller's time being up among them | 503 |
//! | unknown | 504 |

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use counterfoil::call::propagate;
use counterfoil::{
    Clock, Decision, Error, Failure, OperationType, Receipt, Reply, Store, SystemClock, Table, TableError, Tx,
};
use serde::{Deserialize, Serialize};

use crate::Failed;

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Order {
    item: String,
    count: u32,
}

const CREATE_ORDER: OperationType = OperationType::new("create_order");
const ORDERS: Table<u64, Order> = Table::new("orders");

/// Whoever is authenticated; this example knows one customer.
const TENANT: &str = "shop";
const ACTOR: &str = "alice";

pub(crate) const KEY: HeaderName = HeaderName::from_static("idempotency-key");
pub(crate) const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
/// `completed` or `rejected`: the answer is a receipt, so it speaks of every attempt with this key.
pub(crate) const RECEIPT: HeaderName = HeaderName::from_static("x-receipt");

struct Service {
    store: Store,
    clock: SystemClock,
}

pub(crate) async fn serve(directory: &Path, port: u16, child: bool) -> Result<(), Failed> {
    let store = Store::builder().operation(&CREATE_ORDER).table(&ORDERS).open(directory)?;
    let service = Arc::new(Service { store, clock: SystemClock::default() });
    let routes = axum::Router::new().route("/orders", post(create).get(count)).with_state(service);
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    println!("listening on {}", listener.local_addr()?);
    if child {
        // Its parent holds the other end: when that is gone, so is this.
        std::thread::spawn(|| {
            let ended = std::io::stdin().read_to_end(&mut Vec::new());
            std::process::exit(i32::from(ended.is_err()));
        });
    }
    Ok(axum::serve(listener, routes).await?)
}

async fn create(State(service): State<Arc<Service>>, headers: HeaderMap, body: Bytes) -> Response {
    let Some(key) = headers.get(KEY) else {
        return (StatusCode::BAD_REQUEST, "Idempotency-Key is missing: mint one for each order\n").into_response();
    };
    let inbound = match propagate::http::inbound(&headers, service.clock.monotonic()) {
        Ok(inbound) => inbound,
        Err(malformed) => return (StatusCode::BAD_REQUEST, format!("{malformed}\n")).into_response(),
    };
    let request = CREATE_ORDER.request(TENANT, ACTOR, key.as_bytes()).and_then(|request| request.json_text(&body));
    let operation = match request {
        Ok(operation) => operation.attempt(inbound.previous_attempts.saturating_add(1)),
        Err(invalid) => return refused(&invalid.into()),
    };
    let operation = match inbound.deadline.moment() {
        // What waits in the queue longer than its caller is not started.
        Some(_) => operation.deadline(inbound.deadline.remaining(service.clock.monotonic())),
        None => operation,
    };
    let operation = match inbound.trace {
        Some(trace) => operation.trace_id(trace.to_string()),
        None => Ok(operation),
    };
    let ticket = operation
        .map_err(Error::from)
        .and_then(|operation| service.store.submit(operation, move |tx: &Tx<'_>| create_order(tx, &body)));
    match ticket {
        Ok(ticket) => ticket.await.map_or_else(|error| refused(&error), answer),
        Err(error) => refused(&error),
    }
}

/// The business. A count of nothing is a "no" that is stored like a "yes".
fn create_order(tx: &Tx<'_>, body: &[u8]) -> Result<Decision, Failure> {
    let order: Order = match serde_json::from_slice(body) {
        Ok(order) => order,
        Err(error) => return Ok(Decision::Reject(Reply::new(400)?.json(&error.to_string())?)),
    };
    if order.count == 0 {
        return Ok(Decision::Reject(Reply::refused().json(&"an order of nothing")?));
    }
    let orders = tx.table(&ORDERS)?;
    let number = orders.last()?.map_or(1, |(last, _)| last + 1);
    orders.insert_new(number, &order)?;
    Ok(Decision::Reply(Reply::created().resource_id(format!("orders/{number}")).json(&order)?))
}

fn answer(receipt: Receipt) -> Response {
    let reply = receipt.reply();
    let status = StatusCode::from_u16(reply.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = (status, reply.body().to_vec()).into_response();
    let headers = response.headers_mut();
    headers.remove(header::CONTENT_TYPE);
    let mut set = |name, value: Option<&str>| {
        if let Some(value) = value.and_then(|value| HeaderValue::from_str(value).ok()) {
            headers.insert(name, value);
        }
    };
    set(header::CONTENT_TYPE, reply.content_type());
    set(header::LOCATION, reply.resource().map(|resource| format!("/{resource}")).as_deref());
    set(RECEIPT, Some(if receipt.is_rejected() { "rejected" } else { "completed" }));
    set(REPLAYED, receipt.is_replayed().then_some("true"));
    response
}

fn refused(error: &Error) -> Response {
    let status = status_of(error);
    let mut response = (status, format!("{error}\n")).into_response();
    let wait = if let Error::InProgress { retry_after } = error { Some(retry_after.as_secs().max(1)) } else { None };
    // Too much at once is over in a moment; nobody knows more.
    if let Some(seconds) = wait.or((status == StatusCode::TOO_MANY_REQUESTS).then_some(1)) {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

fn status_of(error: &Error) -> StatusCode {
    match error {
        Error::InProgress { .. } => StatusCode::CONFLICT,
        Error::Gone(_) => StatusCode::GONE,
        Error::Conflict { .. } => StatusCode::UNPROCESSABLE_ENTITY,
        Error::Overloaded | Error::QuotaExceeded { .. } => StatusCode::TOO_MANY_REQUESTS,
        Error::Unknown(_) | Error::NeedsReconciliation => StatusCode::GATEWAY_TIMEOUT,
        Error::Denied => StatusCode::FORBIDDEN,
        Error::Invalid(_) | Error::Expired { .. } | Error::FromTheFuture { .. } => StatusCode::BAD_REQUEST,
        Error::DeadlineExceeded
        | Error::Cancelled
        | Error::DiskFull(_)
        | Error::Segment(_)
        | Error::Closed
        | Error::Poisoned(_)
        | Error::Failed(_) => StatusCode::SERVICE_UNAVAILABLE,
        // Faults of this program, and what there will be.
        Error::Panicked { .. }
        | Error::Table(_)
        | Error::Limit { .. }
        | Error::Undeclared { .. }
        | Error::Reentrant
        | Error::Corrupt(_)
        | _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

async fn count(State(service): State<Arc<Service>>) -> Response {
    let orders = service.store.read(|view| view.table(&ORDERS)?.len());
    orders.map_or_else(
        |error: TableError| refused(&Error::Corrupt(error.to_string())),
        |orders| orders.to_string().into_response(),
    )
}
