//! A bad network: of ten connections it loses the reply of two, cuts one in the middle, and makes one wait too long.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use counterfoil::call::{Randomness, SeededRandom};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

/// How often it did what.
#[derive(Debug, Default)]
pub(crate) struct Harm {
    pub(crate) replies_lost: AtomicU64,
    pub(crate) requests_cut: AtomicU64,
    pub(crate) stalled: AtomicU64,
    /// The service had the whole request and ended before it answered.
    pub(crate) unanswered: AtomicU64,
    /// Requests that the service has, and has not begun to answer, at the moment.
    pub(crate) open: AtomicU64,
}

/// Where the service listens at the moment.
#[derive(Clone, Debug)]
pub(crate) struct Upstream(Arc<Mutex<SocketAddr>>);

impl Upstream {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self(Arc::new(Mutex::new(address)))
    }

    pub(crate) fn get(&self) -> SocketAddr {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set(&self, address: SocketAddr) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = address;
    }
}

/// Listens, and passes connections on to `upstream`.
pub(crate) async fn start(upstream: Upstream, seed: u64) -> std::io::Result<(SocketAddr, Arc<Harm>)> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let (address, harm) = (listener.local_addr()?, Arc::new(Harm::default()));
    let (counted, random) = (Arc::clone(&harm), SeededRandom::new(seed));
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            tokio::spawn(pass(client, upstream.get(), random.draw() % 10, Arc::clone(&counted)));
        }
    });
    Ok((address, harm))
}

/// Whatever fails here is one more broken connection.
async fn pass(mut client: TcpStream, upstream: SocketAddr, chance: u64, harm: Arc<Harm>) -> std::io::Result<()> {
    let mut server = TcpStream::connect(upstream).await?;
    match chance {
        0 | 1 => {
            let request = read_request(&mut client).await?;
            ask(&mut server, &request, &harm).await?;
            harm.replies_lost.fetch_add(1, Ordering::Relaxed);
        }
        2 => {
            let request = read_request(&mut client).await?;
            server.write_all(&request[..request.len() / 2]).await?;
            harm.requests_cut.fetch_add(1, Ordering::Relaxed);
        }
        3 => {
            let request = read_request(&mut client).await?;
            ask(&mut server, &request, &harm).await?;
            harm.stalled.fetch_add(1, Ordering::Relaxed);
            // Until the client gives up.
            client.read_to_end(&mut Vec::new()).await?;
        }
        _ => {
            let request = read_request(&mut client).await?;
            let first = ask(&mut server, &request, &harm).await?;
            client.write_u8(first).await?;
            copy_bidirectional(&mut client, &mut server).await?;
        }
    }
    Ok(())
}

/// Hands the request over, and waits until the service has begun to answer, so it was done.
async fn ask(server: &mut TcpStream, request: &[u8], harm: &Harm) -> std::io::Result<u8> {
    server.write_all(request).await?;
    harm.open.fetch_add(1, Ordering::Relaxed);
    let first = server.read_u8().await;
    harm.open.fetch_sub(1, Ordering::Relaxed);
    if first.is_err() {
        harm.unanswered.fetch_add(1, Ordering::Relaxed);
    }
    first
}

/// Head and body, as far as they are one request.
async fn read_request(client: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let (mut request, mut chunk) = (Vec::new(), [0; 4096]);
    loop {
        let read = client.read(&mut chunk).await?;
        request.extend_from_slice(&chunk[..read]);
        if read == 0 || is_whole(&request) {
            return Ok(request);
        }
    }
}

fn is_whole(request: &[u8]) -> bool {
    let Some(head) = request.windows(4).position(|end| end == b"\r\n\r\n") else { return false };
    let text = String::from_utf8_lossy(&request[..head]).to_ascii_lowercase();
    let length = text.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
    request.len() >= head + 4 + length.unwrap_or(0)
}
