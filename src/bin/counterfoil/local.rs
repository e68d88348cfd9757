//! What is done without a store that is open.

use std::path::Path;

use counterfoil::Store;

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
