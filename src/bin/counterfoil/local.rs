//! What is done without a store that is open.

use std::path::Path;

use counterfoil::{Erase, RestoreOptions, Slot, Store};
use serde_json::Value;

/// Makes an empty store.
pub(crate) fn init(directory: &Path, json: bool) -> Result<bool, String> {
    if Store::exists(directory) {
        return Err(format!("there is a store in {} already", directory.display()));
    }
    let store = Store::builder().open(directory).map_err(|error| error.to_string())?;
    let location = store.location();
    store.close().map_err(|error| error.to_string())?;
    if json {
        println!("{}", serde_json::json!({ "made": location }));
    } else {
        println!("made an empty store in {location}; a program declares its tables and operations when it opens it");
    }
    Ok(true)
}

/// Makes a store out of a backup.
pub(crate) fn restore(from: &Path, directory: &Path, erasures: Option<&Path>, json: bool) -> Result<bool, String> {
    let mut options = RestoreOptions::default();
    if let Some(list) = erasures {
        let text = std::fs::read_to_string(list).map_err(|error| format!("{}: {error}", list.display()))?;
        for (number, line) in (1..).zip(text.lines()) {
            let at = |reason: &str| format!("{}, line {number}: {reason}", list.display());
            let line: Value = serde_json::from_str(line).map_err(|error| at(&error.to_string()))?;
            let (what, reason) = erasure(&line).ok_or_else(|| at("not what `erasures --json` writes"))?;
            options = options.erase(what, reason);
        }
    }
    let restored = Store::restore(from, directory, &options).map_err(|error| error.to_string())?;
    let from = restored.from.map_or_else(|| "an empty store".to_owned(), |position| position.to_string());
    if json {
        let made = serde_json::json!({ "backup_id": restored.backup_id, "from": from, "epoch": restored.epoch });
        println!("{made}");
    } else {
        println!(
            "restored backup {}, which ends at {from}; the store goes on in epoch {}",
            restored.backup_id, restored.epoch
        );
        println!("operations that came after the backup are not known: their keys execute again");
    }
    Ok(true)
}

fn erasure(line: &Value) -> Option<(Erase, String)> {
    let text = |name: &str| line.get(name).and_then(Value::as_str);
    let tenant = text("tenant")?;
    let what = match text("what")? {
        "tenant" => Erase::tenant(tenant),
        "actor" => Erase::actor(tenant, text("actor")?),
        "operation" => {
            let key = match text("key") {
                Some(key) => key.as_bytes().to_vec(),
                None => unhex(line["key"].get("hex")?.as_str()?)?,
            };
            Erase::operation(Slot::new(tenant, text("actor")?, text("operation")?, key).ok()?)
        }
        _ => return None,
    };
    Some((what, text("reason")?.to_owned()))
}

fn unhex(digits: &str) -> Option<Vec<u8>> {
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok()).collect()
}
