#![forbid(unsafe_code)]
//! `derive(Record)`: a struct as the fields of a hash. What it means is said in `russet::object`;
//! here is what it takes and what it refuses.

mod attributes;

use attributes::{FieldOptions, Kind, StructOptions};
use proc_macro::TokenStream;
use proc_macro2::{Ident, TokenStream as Tokens};
use quote::{format_ident, quote};
use syn::{Data, DeriveInput, Error, Field, Fields, Result, Type, parse_macro_input};

/// The most fields of a record: it is one object, not a table.
const FIELDS_MAX: usize = 64;
/// What the store itself keeps in every record.
const RESERVED: &[&str] =
    &["schema_version", "version", "created_at_ms", "updated_at_ms", "source_version"];

/// Maps a struct to the fields of a stored record, or of a part of one. See `russet::object`.
#[proc_macro_derive(Record, attributes(record))]
pub fn derive_record(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand(&input).unwrap_or_else(Error::into_compile_error).into()
}

fn expand(input: &DeriveInput) -> Result<Tokens> {
    if !input.generics.params.is_empty() {
        return Err(Error::new_spanned(&input.generics, "a record has no parameters"));
    }
    let options = StructOptions::read(input)?;
    let mut names = Vec::new();
    let mut fields = Vec::new();
    for field in named_fields(input)? {
        let field = RecordField::read(field)?;
        if names.contains(&field.stored) || RESERVED.contains(&field.stored.as_str()) {
            let text = format!("the name {} is taken", field.stored);
            return Err(Error::new_spanned(field.name, text));
        }
        // An old name is read, and with write_both written too.
        if let Some(old) = field.options.was.iter().find(|old| RESERVED.contains(&old.as_str())) {
            let text = format!("the name {old} is taken");
            return Err(Error::new_spanned(field.name, text));
        }
        names.push(field.stored.clone());
        fields.push(field);
    }
    if fields.is_empty() || fields.len() > FIELDS_MAX {
        let text = format!("a record has 1 to {FIELDS_MAX} fields");
        return Err(Error::new_spanned(&input.ident, text));
    }
    match &options.kind {
        Kind::Whole { .. } => whole(&input.ident, &options, &fields),
        Kind::View { of } => view(&input.ident, of, &fields),
    }
}

fn named_fields(input: &DeriveInput) -> Result<impl Iterator<Item = &Field>> {
    match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) => Ok(fields.named.iter()),
            _ => Err(Error::new_spanned(&input.ident, "a record has named fields")),
        },
        _ => Err(Error::new_spanned(&input.ident, "a record is a struct")),
    }
}

struct RecordField<'a> {
    name: &'a Ident,
    ty: &'a Type,
    /// As it stands in the hash.
    stored: String,
    options: FieldOptions,
}

impl<'a> RecordField<'a> {
    fn read(field: &'a Field) -> Result<Self> {
        let options = FieldOptions::read(field)?;
        let Some(name) = &field.ident else {
            return Err(Error::new_spanned(field, "a record has named fields"));
        };
        if options.ttl_ms.is_some() && !is_option(&field.ty) {
            let text = "a field with a TTL of its own goes away: make it an Option";
            return Err(Error::new_spanned(&field.ty, text));
        }
        let stored = options.rename.clone().unwrap_or_else(|| unraw(name));
        Ok(RecordField { name, ty: &field.ty, stored, options })
    }

    /// The constant that stands for it: `Profile::DISPLAY_NAME`.
    fn constant(&self) -> Ident {
        format_ident!("{}", unraw(self.name).to_uppercase(), span = self.name.span())
    }
}

fn unraw(name: &Ident) -> String {
    name.to_string().trim_start_matches("r#").to_owned()
}

fn is_option(ty: &Type) -> bool {
    match ty {
        Type::Path(path) => path.path.segments.last().is_some_and(|last| last.ident == "Option"),
        _ => false,
    }
}

fn whole(name: &Ident, options: &StructOptions, fields: &[RecordField]) -> Result<Tokens> {
    let Kind::Whole { purpose, schema, layout, migrate } = &options.kind else {
        return Err(Error::new_spanned(name, "not a whole record"));
    };
    let constants = fields.iter().map(|field| {
        let (constant, ty, stored) = (field.constant(), field.ty, &field.stored);
        let (was, writes_both) = (&field.options.was, field.options.writes_both);
        let ttl_ms = match field.options.ttl_ms {
            Some(ttl_ms) => quote!(::core::option::Option::Some(#ttl_ms)),
            None => quote!(::core::option::Option::None),
        };
        let doc = format!("The field `{}`.", field.stored);
        quote! {
            #[doc = #doc]
            pub const #constant: ::russet::object::Field<#name, #ty> =
                ::russet::object::Field::new(::russet::object::FieldInfo {
                    name: #stored,
                    was: &[#(#was),*],
                    writes_both: #writes_both,
                    ttl_ms: #ttl_ms,
                });
        }
    });
    let migrate = migrate.as_ref().map(|path| {
        quote! {
            fn migrate(
                from: u32,
                fields: &mut ::russet::object::RawFields,
            ) -> ::core::result::Result<(), ::russet::object::Fault> {
                #path(from, fields)
            }
        }
    });
    let view = view(name, &syn::parse_quote!(#name), fields)?;
    Ok(quote! {
        #[allow(dead_code)]
        impl #name {
            #(#constants)*
        }

        impl ::russet::object::Record for #name {
            const PURPOSE: &'static str = ::core::concat!("object.", #purpose);
            const LAYOUT: u32 = #layout;
            const SCHEMA: u32 = #schema;
            #migrate
        }

        #view
    })
}

/// The fields of `name`, each of which must be one of `of`, of the same type.
fn view(name: &Ident, of: &Type, fields: &[RecordField]) -> Result<Tokens> {
    let infos = fields.iter().map(|field| {
        let (constant, ty) = (field.constant(), field.ty);
        quote! {{
            const FIELD: ::russet::object::Field<#of, #ty> = <#of>::#constant;
            FIELD.info()
        }}
    });
    let encode = fields.iter().map(|field| {
        let (constant, field) = (field.constant(), field.name);
        quote!(fields.put(&<#of>::#constant, &self.#field);)
    });
    let decode = fields.iter().map(|field| {
        let (constant, name) = (field.constant(), field.name);
        match field.options.has_default {
            true => quote!(#name: fields.read_or_default(&<#of>::#constant)?),
            false => quote!(#name: fields.read(&<#of>::#constant)?),
        }
    });
    Ok(quote! {
        impl ::russet::object::View<#of> for #name {
            const FIELDS: &'static [::russet::object::FieldInfo] = &[#(#infos),*];

            fn encode(&self, fields: &mut ::russet::object::RawFields) {
                #(#encode)*
            }

            fn decode(
                fields: &::russet::object::RawFields,
            ) -> ::core::result::Result<Self, ::russet::object::Fault> {
                ::core::result::Result::Ok(#name { #(#decode),* })
            }
        }
    })
}
