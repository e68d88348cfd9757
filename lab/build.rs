//! Generates the gRPC contracts from `proto/`. No protoc is needed: protox compiles them in this process.

use std::error::Error;
use std::path::PathBuf;

const CONTRACTS: [&str; 3] =
    ["counterfoil/lab/v1/replica.proto", "counterfoil/lab/v1/provider.proto", "counterfoil/lab/v1/supervisor.proto"];

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?).join("../proto");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={}", root.display());

    let files = protox::compile(CONTRACTS, [&root])?;
    // Reflection serves these bytes, so that grpcurl can list and describe.
    let described = PathBuf::from(std::env::var("OUT_DIR")?).join("lab.descriptors");
    std::fs::write(described, prost::Message::encode_to_vec(&files))?;
    tonic_prost_build::configure().compile_fds(files)?;
    Ok(())
}
