//! Lists: element by element, or in nodes that are ziplists, listpacks or one long element.

use super::error::Result;
use super::input::Input;
use super::kind;
use super::listpack::{Listpack, ListpackWriter};
use super::output::Output;
use super::value::{Found, Loading, Put, locate};
use super::ziplist::Ziplist;
use russet_engine::types::list::{Element, ListBuilder, ListRef};
use std::io::{self, Read, Write};

/// A node of ours ends once it has so many bytes, as Redis's do by default. A longer element is a
/// node of its own.
const NODE_BYTES_MAX: usize = 8 * 1024;

pub fn read<R: Read>(
    input: &mut Input<R>,
    kind: u8,
    loading: &Loading<'_>,
    put: Put<'_>,
) -> Result<Found> {
    let mut list = ListBuilder::new();
    let mut room = Vec::new();
    let parts = if kind == kind::LIST_ZIPLIST { 1 } else { input.length()? };
    for _ in 0..parts {
        let container = match kind {
            kind::LIST => kind::NODE_PLAIN,
            kind::LIST_QUICKLIST_2 => input.length()?,
            _ => kind::NODE_PACKED,
        };
        if !matches!(container, kind::NODE_PLAIN | kind::NODE_PACKED) {
            return Err(input.corrupt("a node of a list of no known kind"));
        }
        input.string(&mut room)?;
        // Only what is too long for a packed node is alone in one.
        if kind == kind::LIST_QUICKLIST_2 && room.is_empty() {
            return Err(input.corrupt("a node of a list that is empty"));
        }
        if container == kind::NODE_PLAIN {
            list.push(Element::parse(&room));
        } else if kind == kind::LIST_QUICKLIST_2 {
            for element in locate(input, Listpack::new(&room))? {
                list.push(locate(input, element)?);
            }
        } else {
            for element in locate(input, Ziplist::new(&room))? {
                list.push(locate(input, element)?);
            }
        }
    }
    if list.is_empty() {
        return Ok(Found::Empty);
    }
    list.put(loading.rules.list, put);
    Ok(Found::Value)
}

/// As [`kind::LIST_QUICKLIST_2`].
pub fn write<W: Write>(output: &mut Output<W>, list: ListRef<'_>) -> io::Result<()> {
    // The number of nodes comes first: they are counted before they are written.
    let mut nodes = 0;
    each_node(list, |_| {
        nodes += 1;
        Ok(())
    })?;
    output.length(nodes)?;
    each_node(list, |node| match node {
        Node::Plain(text) => {
            output.length(kind::NODE_PLAIN)?;
            output.string(text)
        }
        Node::Packed(writer) => {
            output.length(kind::NODE_PACKED)?;
            output.string(&writer.finish())
        }
    })
}

enum Node<'n> {
    Plain(&'n [u8]),
    Packed(&'n mut ListpackWriter),
}

fn each_node(
    list: ListRef<'_>,
    mut visit: impl FnMut(Node<'_>) -> io::Result<()>,
) -> io::Result<()> {
    let mut writer = ListpackWriter::new();
    let mut outcome = Ok(());
    let mut flush = |writer: &mut ListpackWriter, plain: Option<&[u8]>| {
        if !writer.is_empty() && outcome.is_ok() {
            outcome = visit(Node::Packed(writer));
            *writer = ListpackWriter::new();
        }
        if let Some(text) = plain
            && outcome.is_ok()
        {
            outcome = visit(Node::Plain(text));
        }
    };
    list.for_each_in(0..list.len(), |element| match element {
        Element::Bytes(text) if text.len() > NODE_BYTES_MAX => flush(&mut writer, Some(text)),
        element => {
            let bytes = element.with_bytes(<[u8]>::len);
            if writer.bytes_len() + bytes > NODE_BYTES_MAX {
                flush(&mut writer, None);
            }
            writer.push(element);
        }
    });
    flush(&mut writer, None);
    outcome
}
