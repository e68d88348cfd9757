//! A small service that answers with receipts over HTTP, and a caller that reaches it through a bad network: `--help` says
//! the rest.
//!
//! In reading order: [`service`] gives each outcome of the store its status, [`client`] makes one logical operation out of
//! several attempts, [`proxy`] is the network, [`demo`] puts them together and counts.

mod client;
mod demo;
mod proxy;
mod service;

use std::path::PathBuf;
use std::process::ExitCode;

const HELP: &str = "\
Orders over HTTP, each made once.

    cargo run --release --example http_orders -- serve [DIRECTORY] [PORT]
        the service, on 127.0.0.1; without a port the system chooses one. With `serve orders 8080`, for instance:
            curl -i -X POST 127.0.0.1:8080/orders -H 'Idempotency-Key: key-1' -d '{\"item\":\"socks\",\"count\":2}'

    cargo run --release --example http_orders -- demo [ORDERS] [SEED] [KILLS]
        starts the service as a second process, makes orders through a proxy that loses replies and cuts connections,
        kills the service with SIGKILL and starts it again meanwhile, and counts (default 200 orders, seed 1, 3 kills).
        Exit code 1 if an order is there twice, or is missing; 3 if no kill fell into an open request.
";

/// Wrong usage, or something that says nothing about the service.
const EXIT_USAGE: u8 = 2;
/// Nothing is wrong, and nothing was shown.
const EXIT_NOT_EXERCISED: u8 = 3;

/// What a run has shown.
enum Ended {
    Right,
    Wrong,
    NotExercised,
}

#[tokio::main]
async fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let ended = match args.as_slice() {
        ["serve", rest @ ..] => serve(rest).await.map(|()| Ended::Right),
        ["demo", rest @ ..] => demonstrate(rest).await,
        _ => {
            print!("{HELP}");
            return ExitCode::from(if args == ["--help"] { 0 } else { EXIT_USAGE });
        }
    };
    match ended {
        Ok(Ended::Right) => ExitCode::SUCCESS,
        Ok(Ended::Wrong) => ExitCode::FAILURE,
        Ok(Ended::NotExercised) => ExitCode::from(EXIT_NOT_EXERCISED),
        Err(error) => {
            eprintln!("http_orders: {error}");
            ExitCode::from(EXIT_USAGE)
        }
    }
}

type Failed = Box<dyn std::error::Error + Send + Sync>;

async fn serve(args: &[&str]) -> Result<(), Failed> {
    let (args, child) = match args {
        [args @ .., "--child"] => (args, true),
        args => (args, false),
    };
    let directory = PathBuf::from(args.first().unwrap_or(&"orders.counterfoil"));
    let port = args.get(1).map_or(Ok(0), |port| port.parse())?;
    service::serve(&directory, port, child).await
}

async fn demonstrate(args: &[&str]) -> Result<Ended, Failed> {
    let orders = args.first().map_or(Ok(200), |orders| orders.parse())?;
    let seed = args.get(1).map_or(Ok(1), |seed| seed.parse())?;
    let kills = args.get(2).map_or(Ok(3), |kills| kills.parse())?;
    demo::run(orders, seed, kills).await
}
