//! Values as bytes, and back.

use super::policy::Policy;
use crate::error::{Error, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// How values are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// Readable, and the default.
    Json,
    /// Smaller, and faster to read.
    #[cfg(feature = "msgpack")]
    MessagePack,
}

impl Format {
    fn name(self) -> &'static str {
        match self {
            Format::Json => "json",
            #[cfg(feature = "msgpack")]
            Format::MessagePack => "msgpack",
        }
    }
}

/// A value as it is stored, or the fact that there is none.
#[derive(Clone, Debug)]
pub(super) struct Payload {
    bytes: Vec<u8>,
    is_null: bool,
    /// Format and version of the schema, as `json:1`.
    encoding: String,
}

impl Payload {
    pub fn encode<V: Serialize>(value: Option<&V>, policy: &Policy) -> Result<Self> {
        let bytes = match (value, policy.format) {
            (None, _) => Vec::new(),
            (Some(value), Format::Json) => serde_json::to_vec(value)
                .map_err(|error| Error::invalid(format!("the value as JSON: {error}")))?,
            #[cfg(feature = "msgpack")]
            (Some(value), Format::MessagePack) => rmp_serde::to_vec_named(value)
                .map_err(|error| Error::invalid(format!("the value as MessagePack: {error}")))?,
        };
        let encoding = format!("{}:{}", policy.format.name(), policy.schema_version);
        Ok(Payload { bytes, is_null: value.is_none(), encoding })
    }

    pub fn stored(kind: &[u8], bytes: Vec<u8>, encoding: String) -> Self {
        Payload { bytes, is_null: kind == b"null", encoding }
    }

    pub fn is_of_schema(&self, policy: &Policy) -> bool {
        let version = self.encoding.split_once(':').map(|(_format, version)| version);
        version.is_some_and(|it| it == policy.schema_version.to_string())
    }

    /// The value, by the format that it was written in.
    pub fn decode<V: DeserializeOwned>(&self) -> Result<Option<V>, String> {
        if self.is_null {
            return Ok(None);
        }
        let format = self.encoding.split_once(':').map_or("", |(format, _version)| format);
        let decoded = match format {
            "json" => serde_json::from_slice(&self.bytes).map_err(|error| json_fault(&error)),
            #[cfg(feature = "msgpack")]
            "msgpack" => {
                rmp_serde::from_slice(&self.bytes).map_err(|_| "not MessagePack of it".into())
            }
            _ => Err("unknown format".to_owned()),
        };
        decoded.map(Some)
    }

    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub fn encoding(&self) -> &str {
        &self.encoding
    }

    pub fn is_null(&self) -> bool {
        self.is_null
    }

    pub fn kind(&self) -> &'static str {
        if self.is_null { "null" } else { "value" }
    }
}

/// Where it went wrong, without the content that serde would quote.
fn json_fault(error: &serde_json::Error) -> String {
    format!("{:?} at column {}", error.classify(), error.column())
}
