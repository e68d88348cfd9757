//! Keys as JSON values, by the name of their type: for a tool that does not know the program's types.

use serde_json::{Value, json};

use super::AsKey;
use super::key::{KeyError, KeyReader, KeyWriter, TableKey};

/// A key as JSON: numbers, strings, booleans and arrays as such; bytes, and keys of types that only the program knows, as
/// `{"hex": ".."}`. Integers beyond 64 bits are strings.
pub(crate) fn key_to_json(key_type: &str, bytes: &[u8]) -> Value {
    read(key_type, bytes).unwrap_or_else(|_| hex_value(bytes))
}

fn hex_value(bytes: &[u8]) -> Value {
    json!({ "hex": hex(bytes) })
}

/// Bytes in lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Bytes from hexadecimal digits in either case.
pub(crate) fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|digit| digit.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect();
    let digits = digits?;
    digits.len().is_multiple_of(2).then(|| digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

fn read(key_type: &str, bytes: &[u8]) -> Result<Value, KeyError> {
    match parts(key_type) {
        Some(parts) => KeyReader::over(bytes, |reader| {
            let values = reader.tuple(|reader| parts.iter().map(|part| part_from(part, reader)).collect())?;
            Ok(Value::Array(values))
        }),
        None => KeyReader::over(bytes, |reader| part_from(key_type, reader)),
    }
}

fn unknown(key_type: &str) -> KeyError {
    KeyError::new(key_type.to_owned(), "a type that only the program knows")
}

fn part_from(key_type: &str, reader: &mut KeyReader<'_>) -> Result<Value, KeyError> {
    Ok(match key_type {
        "u8" => json!(u8::read_key(reader)?),
        "u16" => json!(u16::read_key(reader)?),
        "u32" => json!(u32::read_key(reader)?),
        "u64" => json!(u64::read_key(reader)?),
        "u128" => json!(u128::read_key(reader)?.to_string()),
        "i8" => json!(i8::read_key(reader)?),
        "i16" => json!(i16::read_key(reader)?),
        "i32" => json!(i32::read_key(reader)?),
        "i64" => json!(i64::read_key(reader)?),
        "i128" => json!(i128::read_key(reader)?.to_string()),
        "bool" => json!(bool::read_key(reader)?),
        "string" => json!(String::read_key(reader)?),
        "bytes" => hex_value(&Vec::<u8>::read_key(reader)?),
        "uuid" => json!(uuid_text(<[u8; 16]>::read_key(reader)?)),
        _ => match fixed_bytes(key_type) {
            Some(count) => {
                let bytes: Option<Vec<u8>> = (0..count).map(|_| reader.read_fixed::<1>().map(|[byte]| byte)).collect();
                hex_value(&bytes.ok_or_else(|| KeyError::new(key_type.to_owned(), "too few bytes"))?)
            }
            None => return Err(unknown(key_type)),
        },
    })
}

/// The key that a JSON value stands for, the other way round. A string also stands for a number.
///
/// # Errors
///
/// In words, what is wrong with the value.
pub(crate) fn key_from_json(key_type: &str, value: &Value) -> Result<Vec<u8>, String> {
    if let Some(bytes) = hex_of(value) {
        if key_type == "bytes" || fixed_bytes(key_type).is_none_or(|count| count == bytes.len()) {
            return Ok(bytes);
        }
        return Err(format!("{value} has not as many bytes as a key of type {key_type}"));
    }
    match (parts(key_type), value) {
        (Some(parts), Value::Array(values)) if parts.len() == values.len() => {
            let mut writer = KeyWriter::default();
            let mut outcome = Ok(());
            writer.tuple(|writer| {
                outcome = parts.iter().zip(values).try_for_each(|(part, value)| write_part(part, value, writer));
            });
            outcome.map(|()| writer.into_bytes())
        }
        (Some(_), _) => Err(format!("{value} is no array with the parts of {key_type}")),
        (None, value) => {
            let mut writer = KeyWriter::default();
            write_part(key_type, value, &mut writer)?;
            Ok(writer.into_bytes())
        }
    }
}

fn write_part(key_type: &str, value: &Value, writer: &mut KeyWriter) -> Result<(), String> {
    let not = || format!("{value} is no key of type {key_type}");
    macro_rules! number {
        ($type:ty) => {{
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            text.parse::<$type>().map_err(|_| not())?.write_key(writer);
        }};
    }
    match key_type {
        "u8" => number!(u8),
        "u16" => number!(u16),
        "u32" => number!(u32),
        "u64" => number!(u64),
        "u128" => number!(u128),
        "i8" => number!(i8),
        "i16" => number!(i16),
        "i32" => number!(i32),
        "i64" => number!(i64),
        "i128" => number!(i128),
        "bool" => number!(bool),
        "string" => AsKey::<String>::write_key(value.as_str().ok_or_else(not)?, writer),
        "bytes" => AsKey::<Vec<u8>>::write_key(&hex_of(value).ok_or_else(not)?, writer),
        "uuid" => {
            let digits: String = value.as_str().ok_or_else(not)?.chars().filter(|digit| *digit != '-').collect();
            let bytes: [u8; 16] = unhex(&digits).and_then(|bytes| bytes.try_into().ok()).ok_or_else(not)?;
            AsKey::<[u8; 16]>::write_key(&bytes, writer);
        }
        _ => match (fixed_bytes(key_type), hex_of(value)) {
            (Some(count), Some(bytes)) if bytes.len() == count => writer.write_fixed(&bytes),
            _ => return Err(not()),
        },
    }
    Ok(())
}

fn hex_of(value: &Value) -> Option<Vec<u8>> {
    let object = value.as_object().filter(|object| object.len() == 1)?;
    unhex(object.get("hex")?.as_str()?)
}

/// The parts of the name of a tuple's type.
fn parts(key_type: &str) -> Option<Vec<&str>> {
    // Tuples in tuples are read as bytes: nobody has asked for more.
    let inner = key_type.strip_prefix('(')?.strip_suffix(')')?;
    (!inner.contains(['(', ')'])).then(|| inner.split(',').collect())
}

fn fixed_bytes(key_type: &str) -> Option<usize> {
    key_type.strip_prefix("bytes[")?.strip_suffix(']')?.parse().ok()
}

fn uuid_text(bytes: [u8; 16]) -> String {
    let digits = hex(&bytes);
    [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-")
}

#[cfg(test)]
mod tests {
    use super::super::key::{decode, encode};
    use super::*;

    fn both_ways<K: TableKey>(key: &K, json: &Value) {
        let name = K::type_name();
        let bytes = encode::<K>(key);
        assert_eq!(key_to_json(&name, &bytes), *json, "{name}");
        assert_eq!(key_from_json(&name, json).as_deref(), Ok(&bytes[..]), "{name}");
        assert!(decode::<K>(&bytes).is_ok());
    }

    #[test]
    fn every_key_type_goes_to_json_and_back() {
        both_ways(&7_u8, &json!(7));
        both_ways(&u64::MAX, &json!(u64::MAX));
        both_ways(&u128::MAX, &json!(u128::MAX.to_string()));
        both_ways(&-7_i32, &json!(-7));
        both_ways(&i128::MIN, &json!(i128::MIN.to_string()));
        both_ways(&true, &json!(true));
        both_ways(&"größe".to_owned(), &json!("größe"));
        both_ways(&vec![0_u8, 255], &json!({ "hex": "00ff" }));
        both_ways(&[1_u8, 2, 3], &json!({ "hex": "010203" }));
        both_ways(&("a\0b".to_owned(), 7_u64, vec![0_u8]), &json!(["a\0b", 7, { "hex": "00" }]));
    }

    #[cfg(feature = "uuid")]
    #[test]
    fn a_uuid_is_its_text() {
        let text = "017f22e2-79b0-7cc3-98c4-dc0c0c07398f";
        both_ways(&uuid::Uuid::parse_str(text).unwrap(), &json!(text));
    }

    #[test]
    fn a_key_that_cannot_be_read_is_shown_as_bytes_and_taken_as_bytes() {
        assert_eq!(key_to_json("order-id", &[1, 2]), json!({ "hex": "0102" }));
        assert_eq!(key_to_json("u64", &[1]), json!({ "hex": "01" }));
        assert_eq!(key_to_json("((u8,u8),u8)", &[1]), json!({ "hex": "01" }));
        assert_eq!(key_from_json("order-id", &json!({ "hex": "0102" })), Ok(vec![1, 2]));
    }

    #[test]
    fn what_is_no_key_of_the_type_is_an_error_in_words() {
        for (key_type, value) in [
            ("u8", json!(256)),
            ("u8", json!("x")),
            ("string", json!(7)),
            ("(u8,u8)", json!([1])),
            ("(u8,u8)", json!(1)),
            ("uuid", json!("017f")),
            ("bytes[3]", json!({ "hex": "01" })),
            ("order-id", json!("x")),
        ] {
            assert!(key_from_json(key_type, &value).is_err(), "{key_type} {value}");
        }
    }
}
