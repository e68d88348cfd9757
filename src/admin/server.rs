//! The local socket on which a service answers the operator's tool.

use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use crate::disk::{LocalListener, LocalStream, connect_local, listen_local};
use crate::store::Store;

use super::request::{Answer, Request};
use super::run::run;

/// Conversations at once. Each has a thread and perhaps a view of the store.
const CONVERSATIONS_MAX: usize = 16;

/// Longest request, in bytes.
const REQUEST_BYTES_MAX: u64 = 64 * 1024;

impl Store {
    /// Answers the operator's tool (`counterfoil`) while this process has the store open: on the local socket `ADMIN` in
    /// the store's directory, which only the owner of the directory may use (mode 0600). Until the returned value is
    /// dropped.
    ///
    /// Whoever may connect may read everything that is stored, and erase it.
    ///
    /// # Errors
    ///
    /// The operating system's, for instance if the directory's path is longer than a socket's may be (about 100 bytes), or
    /// the store is not in a directory of the file system.
    pub fn serve_admin(&self) -> io::Result<AdminServer> {
        let listener = Arc::new(listen_local(Path::new(&self.location()))?);
        let stopping = Arc::new(AtomicBool::new(false));
        let (store, accepting, ending) = (self.clone(), Arc::clone(&listener), Arc::clone(&stopping));
        let thread = thread::Builder::new().name("counterfoil-admin".to_owned()).spawn(move || {
            let mut conversations: Vec<JoinHandle<()>> = Vec::new();
            while let Ok(stream) = accepting.accept() {
                if ending.load(Ordering::SeqCst) {
                    break;
                }
                conversations.retain(|conversation| !conversation.is_finished());
                if conversations.len() >= CONVERSATIONS_MAX {
                    refuse(stream);
                    continue;
                }
                let store = store.clone();
                let spawned = thread::Builder::new()
                    .name("counterfoil-admin-talk".to_owned())
                    .spawn(move || drop(converse(&store, stream)));
                match spawned {
                    Ok(conversation) => conversations.push(conversation),
                    Err(error) => tracing::warn!(%error, "the operator's tool cannot be answered"),
                }
            }
        })?;
        Ok(AdminServer { listener, stopping, thread: Some(thread) })
    }
}

/// Answers the operator's tool until it is dropped.
///
/// A conversation that is under way then goes on until it ends, and so does the store it holds.
#[derive(Debug)]
#[must_use = "the tool is answered until this is dropped"]
pub struct AdminServer {
    listener: Arc<LocalListener>,
    stopping: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for AdminServer {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::SeqCst);
        self.listener.close();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that answers the operator's tool panicked");
        }
    }
}

fn refuse(stream: LocalStream) {
    let message = "too many conversations with this store at once; try again".to_owned();
    if let Err(error) = write_line(&mut BufWriter::new(stream), &Answer::Failed { message }) {
        tracing::debug!(%error, "nobody heard the refusal");
    }
}

/// One request, and its answers.
fn converse(store: &Store, stream: LocalStream) -> io::Result<()> {
    let mut line = String::new();
    io::Read::take(BufReader::new(stream.try_clone()?), REQUEST_BYTES_MAX).read_line(&mut line)?;
    let mut out = BufWriter::new(stream);
    match serde_json::from_str::<Request>(&line) {
        Ok(request) => run(store, &request, &mut |answer| write_line(&mut out, &answer)),
        Err(error) => {
            let message = format!("the request cannot be read: {error}; is the tool of another version?");
            write_line(&mut out, &Answer::Failed { message })
        }
    }
}

fn write_line(out: &mut impl Write, answer: &Answer) -> io::Result<()> {
    serde_json::to_writer(&mut *out, answer)?;
    out.write_all(b"\n")?;
    out.flush()
}

/// Asks the service that has a store open, and hands over its answers.
///
/// # Errors
///
/// [`io::ErrorKind::NotFound`] or [`io::ErrorKind::ConnectionRefused`] if nobody answers in that directory; that of
/// `emit`; [`io::ErrorKind::UnexpectedEof`] if the service ended meanwhile.
pub fn ask(directory: &Path, request: &Request, emit: &mut dyn FnMut(Answer) -> io::Result<()>) -> io::Result<()> {
    let stream = connect_local(directory)?;
    let mut out = BufWriter::new(stream.try_clone()?);
    serde_json::to_writer(&mut out, request)?;
    out.write_all(b"\n")?;
    out.flush()?;
    for line in BufReader::new(stream).lines() {
        let answer: Answer = serde_json::from_str(&line?)?;
        let is_last = matches!(answer, Answer::Done { .. } | Answer::Failed { .. });
        emit(answer)?;
        if is_last {
            return Ok(());
        }
    }
    Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the service ended before its answer did"))
}
