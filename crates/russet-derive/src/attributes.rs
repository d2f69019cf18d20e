//! What `#[record(...)]` says of a struct and of a field.

use syn::meta::ParseNestedMeta;
use syn::{DeriveInput, Error, Field, LitInt, LitStr, Path, Result, Type};

/// Of a struct.
pub struct StructOptions {
    pub kind: Kind,
}

pub enum Kind {
    /// A record by itself.
    Whole { purpose: String, schema: u32, layout: u32, migrate: Option<Path> },
    /// Some fields of another record.
    View { of: Type },
}

impl StructOptions {
    pub fn read(input: &DeriveInput) -> Result<Self> {
        let (mut purpose, mut schema, mut layout) = (None, None, None);
        let (mut migrate, mut view_of) = (None, None);
        for attribute in input.attrs.iter().filter(|it| it.path().is_ident("record")) {
            attribute.parse_nested_meta(|meta| {
                match name_of(&meta).as_str() {
                    "purpose" => purpose = Some(plain(&meta)?),
                    "schema" => schema = Some(number(&meta)?),
                    "layout" => layout = Some(number(&meta)?),
                    "migrate" => migrate = Some(meta.value()?.parse::<Path>()?),
                    "view_of" => view_of = Some(meta.value()?.parse::<Type>()?),
                    _ => return Err(meta.error("no such option of a record")),
                }
                Ok(())
            })?;
        }
        if let Some(of) = view_of {
            if purpose.is_some() || schema.is_some() || layout.is_some() || migrate.is_some() {
                return Err(Error::new_spanned(&input.ident, "a view has no options but view_of"));
            }
            return Ok(StructOptions { kind: Kind::View { of } });
        }
        let missing = |what: &str| {
            let text = format!("#[record({what} = ...)] is missing, or view_of = ...");
            Error::new_spanned(&input.ident, text)
        };
        let kind = Kind::Whole {
            purpose: purpose.ok_or_else(|| missing("purpose"))?,
            schema: schema.ok_or_else(|| missing("schema"))?,
            layout: layout.unwrap_or(1),
            migrate,
        };
        Ok(StructOptions { kind })
    }
}

/// Of a field.
#[derive(Default)]
pub struct FieldOptions {
    pub rename: Option<String>,
    /// Names that it had before.
    pub was: Vec<String>,
    /// Written under its old names too, while older programs read it.
    pub writes_both: bool,
    pub has_default: bool,
    pub ttl_ms: Option<u64>,
}

impl FieldOptions {
    pub fn read(field: &Field) -> Result<Self> {
        let mut options = FieldOptions::default();
        for attribute in field.attrs.iter().filter(|it| it.path().is_ident("record")) {
            attribute.parse_nested_meta(|meta| {
                match name_of(&meta).as_str() {
                    "rename" => options.rename = Some(plain(&meta)?),
                    "was" => options.was.push(plain(&meta)?),
                    "write_both" => options.writes_both = true,
                    "default" => options.has_default = true,
                    "ttl_ms" => options.ttl_ms = Some(u64::from(number(&meta)?)),
                    _ => return Err(meta.error("no such option of a field")),
                }
                Ok(())
            })?;
        }
        if options.writes_both && options.was.is_empty() {
            return Err(Error::new_spanned(field, "write_both needs was = \"...\""));
        }
        Ok(options)
    }
}

fn name_of(meta: &ParseNestedMeta) -> String {
    meta.path.get_ident().map(ToString::to_string).unwrap_or_default()
}

/// A number above 0.
fn number(meta: &ParseNestedMeta) -> Result<u32> {
    let literal: LitInt = meta.value()?.parse()?;
    let number: u32 = literal.base10_parse()?;
    if number == 0 {
        return Err(Error::new_spanned(literal, "must be above 0"));
    }
    Ok(number)
}

/// A name in keys or fields. No dots: what the store itself adds to a field has one.
fn plain(meta: &ParseNestedMeta) -> Result<String> {
    let literal: LitStr = meta.value()?.parse()?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    if literal.value().is_empty() || !literal.value().bytes().all(is_plain) {
        let text = "a name is made of letters, digits, hyphens and underscores";
        return Err(Error::new_spanned(literal, text));
    }
    Ok(literal.value())
}
