//! The document of the format names what the code writes, and the tables of all documents are whole.

#[path = "support/source.rs"]
mod source;

use source::{read, root};

/// What a declaration in the source holds, from the text before its opening brace or bracket to the line that ends it.
fn body<'a>(text: &'a str, begins: &str, ends: &str) -> &'a str {
    let after = text.split_once(begins).unwrap_or_else(|| panic!("{begins} is missing")).1;
    after.split_once(ends).unwrap_or_else(|| panic!("{begins} does not end")).0
}

/// The names of the store's own tables.
fn system_tables() -> Vec<String> {
    let rows = read("src/store/rows.rs");
    let listed = body(&rows, "SYSTEM_TABLES: [", "];");
    let mut names: Vec<String> = listed.split('"').skip(1).step_by(2).map(str::to_owned).collect();
    let meta = read("src/state/engine/meta.rs");
    names.push(body(&meta, "META_TABLE: &str = \"", "\"").to_owned());
    names
}

/// The fields of a struct, or of an enum's variant, in order.
fn fields(file: &str, begins: &str, ends: &str) -> Vec<String> {
    let text = read(file);
    let lines = body(&text, begins, ends).lines().map(str::trim).filter(|line| !line.starts_with(['/', '#']));
    let named = lines.filter_map(|line| line.split_once(": "));
    named.map(|(name, _)| name.rsplit(' ').next().unwrap_or_default().to_owned()).collect()
}

/// The fields that the document gives a type, in order.
fn documented(format: &str, name: &str) -> Vec<String> {
    let begins = format!("| `{name}` | ");
    let rows: Vec<&str> = format.lines().filter_map(|line| line.strip_prefix(&begins)).collect();
    assert_eq!(rows.len(), 1, "one row says what {name} is: {rows:?}");
    let spans = rows[0].split('`').skip(1).step_by(2).map(|span| span.split(':').next().unwrap_or_default());
    // Names of variants begin with a capital.
    spans.filter(|span| span.starts_with(|c: char| c.is_ascii_lowercase())).map(str::to_owned).collect()
}

/// How many cells a row of a table has. A bar behind a backslash is text.
fn cells(row: &str) -> usize {
    row.replace("\\|", "").matches('|').count() - 1
}

/// The documents that people read.
fn documents() -> Vec<String> {
    let mut names = Vec::new();
    for folder in ["", "docs/"] {
        for entry in std::fs::read_dir(root().join(folder)).expect("the folder is there") {
            let name = entry.expect("readable").file_name().into_string().expect("a name in UTF-8");
            if name.ends_with(".md") {
                names.push(format!("{folder}{name}"));
            }
        }
    }
    names.sort();
    names
}

/// The rows of a document that do not fit their header, or have none.
fn broken_rows(name: &str, text: &str) -> Vec<String> {
    let mut broken = Vec::new();
    let (mut fenced, mut wanted) = (false, None);
    let lines: Vec<&str> = text.lines().collect();
    for (index, line) in lines.iter().enumerate() {
        if line.starts_with("```") {
            fenced = !fenced;
        }
        if fenced || !line.starts_with('|') {
            wanted = None;
            continue;
        }
        let here = cells(line);
        let rule = lines.get(index + 1).is_some_and(|next| next.starts_with("|---"));
        if wanted.is_none() && rule {
            wanted = Some(here);
        }
        if wanted != Some(here) {
            broken.push(format!("{name}:{}: {here} cells where the header has {wanted:?}", index + 1));
        }
    }
    broken
}

#[test]
fn every_system_table_has_a_row_in_the_format() {
    let format = read("docs/format.md");
    let tables = system_tables();
    assert!(tables.len() >= 8, "the tables are found: {tables:?}");
    for table in tables {
        let rows = format.lines().filter(|line| line.starts_with(&format!("| `{table}` | "))).count();
        assert_eq!(rows, 1, "docs/format.md says in one row what is in {table}");
    }
}

#[test]
fn the_fields_of_the_stores_rows_are_those_that_the_format_lists() {
    let format = read("docs/format.md");
    for name in ["ScopeRow", "ReceiptRow", "ClaimRow", "ExpiryRow"] {
        let written = fields("src/store/rows.rs", &format!("struct {name} {{"), "\n}");
        assert!(written.len() >= 3, "the fields of {name} are found: {written:?}");
        assert_eq!(documented(&format, name), written, "{name}");
    }
    let calls = fields("src/store/effects/rows.rs", "struct CallbackRow {", "\n}");
    assert_eq!(documented(&format, "CallbackRow"), calls);
    let declared = fields("src/state/table/declare.rs", "struct TableDeclaration {", "\n}");
    assert_eq!(documented(&format, "TableDeclaration"), declared);
    let meta = fields("src/state/engine/meta.rs", "enum StoredMeta {", "\n}");
    assert_eq!(documented(&format, "StoredMeta"), meta);
}

#[test]
fn every_row_of_a_table_has_as_many_cells_as_its_header() {
    let documents = documents();
    assert!(documents.len() >= 6, "the documents are found: {documents:?}");
    let broken: Vec<String> = documents.iter().flat_map(|name| broken_rows(name, &read(name))).collect();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// The rule above is worth what the reader of tables sees.
#[test]
fn a_row_that_is_too_long_or_has_no_header_is_seen() {
    let text =
        "| a | b |\n|---|---|\n| 1 | 2 |\n| 1 | 2 | 3 |\n\n| alone |\n\n```\n| shown |\n```\n\n| a \\| b |\n|---|\n";
    let broken = broken_rows("x", text);
    assert_eq!(broken.len(), 2, "{broken:?}");
    assert!(broken[0].starts_with("x:4: 3 cells") && broken[1].starts_with("x:6: 1 cells"), "{broken:?}");
}
