//! Questions to whoever sits in front of a lesson.
//!
//! Lines are read on a thread of their own, so that Ctrl-C is heard at once. The terminal stays as it is: nothing in
//! here changes its mode, so there is nothing to restore.

use std::io::{self, Write};
use std::str::FromStr;

use tokio::sync::{mpsc, watch};

use super::{Failed, say};
use crate::lesson::report::{Guess, HOW_OFTEN, Prediction, RECORD_FOUND};

/// Reads answers.
pub(super) struct Asker {
    lines: mpsc::Receiver<String>,
}

impl Asker {
    pub(super) fn new() -> Self {
        let (sender, lines) = mpsc::channel(1);
        std::thread::spawn(move || {
            for line in io::stdin().lines().map_while(Result::ok) {
                if sender.blocking_send(line).is_err() {
                    return;
                }
            }
        });
        Self { lines }
    }

    /// A prediction has to be written down: people who only watch learn nothing that can be measured.
    pub(super) async fn predict(&mut self, interrupts: &mut watch::Receiver<u32>) -> Result<Prediction, Failed> {
        say("");
        say("Before it runs, write down what will happen in the broken variant.");
        let executed: Guess = self.ask(&format!("{HOW_OFTEN}? [0, 1, 2 or unknown] "), interrupts).await?;
        let found: YesOrNo = self.ask(&format!("{RECORD_FOUND}? [yes or no] "), interrupts).await?;
        let prediction = Prediction { executed, found: found.0 };
        say(format!("You predict: {prediction}. It is in the report."));
        Ok(prediction)
    }

    pub(super) async fn go_on(&mut self, text: &str, interrupts: &mut watch::Receiver<u32>) -> Result<(), Failed> {
        say("");
        self.line(&format!("{text} "), interrupts).await.map(drop)
    }

    /// Asks until the answer makes sense.
    async fn ask<T: FromStr<Err = String>>(
        &mut self,
        question: &str,
        interrupts: &mut watch::Receiver<u32>,
    ) -> Result<T, Failed> {
        loop {
            match self.line(question, interrupts).await?.parse() {
                Ok(answer) => return Ok(answer),
                Err(why) => say(why),
            }
        }
    }

    async fn line(&mut self, question: &str, interrupts: &mut watch::Receiver<u32>) -> Result<String, Failed> {
        let mut output = io::stdout().lock();
        drop(write!(output, "{question}").and_then(|()| output.flush()));
        drop(output);
        tokio::select! {
            line = self.lines.recv() => line.ok_or_else(|| {
                Failed { line: "nobody answers: say --yes to run without a prediction".to_owned(), code: 2 }
            }),
            Ok(_) = interrupts.wait_for(|count| *count >= 1) => {
                say("");
                Err(Failed { line: "interrupted; nothing was running".to_owned(), code: 130 })
            }
        }
    }
}

/// An answer of two.
struct YesOrNo(bool);

impl FromStr for YesOrNo {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim() {
            "yes" | "y" => Ok(Self(true)),
            "no" | "n" => Ok(Self(false)),
            other => Err(format!("{other:?} is neither yes nor no")),
        }
    }
}
