//! How the content of a request becomes what is hashed.

use serde::Serialize;

use crate::base::invalid::Invalid;
use crate::base::operation::{ContentKind, Operation, Request};

use super::canonical::{json, typed};

impl Request {
    /// The content as a Rust value, through serde to canonical JSON: a retry that builds an equal value is the same
    /// operation. Choose the fields that make the identity, and leave out those that change between attempts.
    ///
    /// A field that is `None` is left out, so adding an optional field keeps old digests; `None` in a sequence is null.
    ///
    /// # Errors
    ///
    /// [`Invalid::Request`] for a value without a canonical form, such as one with NaN. Nothing was executed.
    pub fn json<T: Serialize + ?Sized>(self, value: &T) -> Result<Operation, Invalid> {
        let content = typed::to_canonical(value).map_err(|fault| Invalid::Request(fault.to_string()))?;
        Ok(Operation::new(self, ContentKind::Json, content))
    }

    /// The content as JSON text, as it arrived. Members may be in any order and numbers in any spelling: the canonical
    /// form is hashed (RFC 8785, but with exact decimal numbers).
    ///
    /// No defaults are applied, and a member that is null is not the same as one that is absent.
    ///
    /// # Errors
    ///
    /// [`Invalid::Request`] for text that is not JSON, has duplicate members or lone surrogates, or is nested deeper than
    /// 128. Nothing was executed.
    pub fn json_text(self, text: impl AsRef<[u8]>) -> Result<Operation, Invalid> {
        let content = json::canonicalise(text.as_ref()).map_err(|fault| Invalid::Request(fault.to_string()))?;
        Ok(Operation::new(self, ContentKind::Json, content))
    }

    /// The content as bytes, hashed as they are.
    pub fn bytes(self, bytes: impl Into<Vec<u8>>) -> Operation {
        Operation::new(self, ContentKind::Bytes, bytes.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::operation::OperationType;

    const PAY: OperationType = OperationType::new("pay");

    fn request() -> Request {
        PAY.request("t", "a", "k").unwrap()
    }

    #[test]
    fn text_and_value_of_the_same_content_are_the_same_request() {
        #[derive(Serialize)]
        struct Pay {
            to: &'static str,
            cents: u64,
            note: Option<&'static str>,
        }
        let typed = request().json(&Pay { to: "bob", cents: 100, note: None }).unwrap();
        let text = request().json_text(r#" {"cents":1e2, "to":"bo\u0062"} "#).unwrap();
        assert_eq!(typed.content, text.content);
    }

    #[test]
    fn what_has_no_canonical_form_is_refused() {
        assert!(matches!(request().json(&f64::NAN), Err(Invalid::Request(_))));
        assert!(matches!(request().json_text(r#"{"a":1,"\u0061":2}"#), Err(Invalid::Request(_))));
        assert!(matches!(request().json_text(""), Err(Invalid::Request(_))));
    }
}
