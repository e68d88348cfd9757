//! Asking a store: this process opens it, or the service that has it open is asked.

use std::io::{self, IsTerminal, Write};
use std::path::Path;

use counterfoil::admin::{Answer, Request, run};
use counterfoil::{OpenError, Store};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;

use crate::args::Command;
use crate::render;

/// Asks, and prints what is answered. Returns whether what was looked for is there and in order.
pub(crate) fn ask(directory: &Path, command: &Command, json: bool) -> Result<bool, String> {
    let request = command.request().ok_or("this is no question to a store")?;
    let mut screen = Screen::new(command, json);
    let mut emit = |answer| screen.take(answer);
    let asked = match Store::builder().must_exist().open(directory) {
        Ok(store) => {
            let asked = run(&store, &request, &mut emit);
            let closed = store.close();
            asked.and_then(|()| closed.map_err(io::Error::other))
        }
        Err(OpenError::Held { holder }) => ask_holder(directory, &request, &holder, &mut emit)?,
        Err(error) => return Err(error.to_string()),
    };
    match asked {
        Ok(()) => screen.finish(),
        // Whoever read our output has heard enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(true),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(unix)]
fn ask_holder(
    directory: &Path,
    request: &Request,
    holder: &str,
    emit: &mut dyn FnMut(Answer) -> io::Result<()>,
) -> Result<io::Result<()>, String> {
    match counterfoil::admin::ask(directory, request, emit) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
            Err(held(holder))
        }
        asked => Ok(asked),
    }
}

#[cfg(not(unix))]
fn ask_holder(
    _: &Path,
    _: &Request,
    holder: &str,
    _: &mut dyn FnMut(Answer) -> io::Result<()>,
) -> Result<io::Result<()>, String> {
    Err(held(holder))
}

fn held(holder: &str) -> String {
    format!(
        "the store is held by {holder}, which does not answer this tool. Stop it, or let it call Store::serve_admin \
         (feature `admin`), and every command works while it runs"
    )
}

/// Prints answers as they come.
struct Screen<'a> {
    command: &'a Command,
    json: bool,
    lines: Vec<Value>,
    bar: Option<ProgressBar>,
    good: Option<Result<bool, String>>,
}

impl<'a> Screen<'a> {
    const fn new(command: &'a Command, json: bool) -> Self {
        Self { command, json, lines: Vec::new(), bar: None, good: None }
    }

    fn take(&mut self, answer: Answer) -> io::Result<()> {
        match answer {
            Answer::Line { line } => self.line(line),
            Answer::Progress { done, total } => {
                self.progress(done, total);
                Ok(())
            }
            Answer::Done { summary } => {
                self.end_progress();
                self.done(&summary)
            }
            Answer::Failed { message } => {
                self.end_progress();
                self.good = Some(Err(message));
                Ok(())
            }
            _ => Err(io::Error::other("the service is of a newer version than this tool")),
        }
    }

    fn line(&mut self, line: Value) -> io::Result<()> {
        let mut out = io::stdout().lock();
        if self.json || matches!(self.command, Command::Export { .. }) {
            return writeln!(out, "{line}");
        }
        match render::at_once(self.command, &line) {
            // Whoever follows waits for each.
            Some(text) => writeln!(out, "{text}").and_then(|()| out.flush()),
            None => {
                self.lines.push(line);
                Ok(())
            }
        }
    }

    fn done(&mut self, summary: &Value) -> io::Result<()> {
        self.good = Some(Ok(render::is_good(self.command, summary)));
        let mut out = io::stdout().lock();
        if self.json {
            // What was counted is no line of its own, unless there is nothing else.
            return if render::is_all(self.command) { writeln!(out, "{summary}") } else { Ok(()) };
        }
        if matches!(self.command, Command::Export { .. }) {
            return out.flush();
        }
        write!(out, "{}", render::all(self.command, &self.lines, summary))?;
        out.flush()
    }

    fn progress(&mut self, done: u64, total: Option<u64>) {
        if self.json || !io::stderr().is_terminal() {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| match total {
            Some(total) => ProgressBar::new(total).with_style(
                ProgressStyle::with_template("{bar:30} {percent:>3} %  {pos} of {len}  {eta} left")
                    .unwrap_or_else(|_| ProgressStyle::default_bar()),
            ),
            None => ProgressBar::new_spinner(),
        });
        bar.set_position(done);
        if total.is_none() {
            bar.set_message(format!("{done}"));
        }
    }

    fn end_progress(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    fn finish(self) -> Result<bool, String> {
        self.good.unwrap_or_else(|| Err("the store gave no answer".to_owned()))
    }
}
