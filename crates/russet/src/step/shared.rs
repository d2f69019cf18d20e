//! Of the functions that several steps share, those that a step calls: a function that nobody calls
//! has keys that nobody knows, and the engine would lock all shards for it.

/// The text without the functions that `body` does not call, directly or through others. Functions
/// begin with `local function` and end with `end` at the beginning of a line; whatever else stands
/// there is kept.
pub(super) fn called(shared: &str, body: &str) -> String {
    used(shared, body, calls)
}

/// The same for a body that is not the kit's: a function is kept if its name occurs at all. Lua
/// lets a space stand before the parenthesis, or a function go by another name.
pub(super) fn named(shared: &str, body: &str) -> String {
    used(shared, body, names)
}

fn used(shared: &str, body: &str, uses: fn(&str, &str) -> bool) -> String {
    let blocks = blocks(shared);
    let mut is_kept: Vec<bool> = blocks.iter().map(|block| block.name.is_none()).collect();
    let mut texts = vec![body];
    while let Some(text) = texts.pop() {
        for (block, kept) in blocks.iter().zip(&mut is_kept) {
            if !*kept && block.name.is_some_and(|name| uses(text, name)) {
                *kept = true;
                texts.push(block.text);
            }
        }
    }
    blocks.iter().zip(is_kept).filter(|(_, kept)| *kept).map(|(block, _)| block.text).collect()
}

/// A comment that begins so opens a branch that few calls take, up to the end of its block.
const RARE: &str = "-- Rare:";

/// The functions that a body calls, and the body: what only rare branches call is made in these,
/// for to make a function takes time, in every call.
pub(super) fn placed(shared: &str, body: &str) -> (String, String) {
    let parts = parts(body);
    let usual: String = parts.iter().filter(|part| !part.is_rare).map(|part| part.text).collect();
    let top = called(shared, &usual);
    let is_at_top = |block: &Block<'_>| block.name.is_none_or(|name| defines(&top, name));
    let placed = parts.iter().map(|part| match part.is_rare {
        false => part.text.to_owned(),
        true => {
            let functions = called(shared, part.text);
            let blocks = blocks(&functions);
            let own = blocks.iter().filter(|block| !is_at_top(block)).map(|block| block.text);
            own.chain([part.text]).collect()
        }
    });
    let placed = placed.collect();
    (top, placed)
}

/// A rare branch, or what stands between two.
struct Part<'s> {
    text: &'s str,
    is_rare: bool,
}

fn parts(body: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let (mut start, mut position, mut rare_indent) = (0, 0, None);
    for line in body.split_inclusive('\n') {
        let code = line.trim_start();
        let indent = line.len() - code.len();
        if rare_indent.is_some_and(|rare| indent < rare && !code.is_empty()) {
            parts.push(Part { text: &body[start..position], is_rare: true });
            (start, rare_indent) = (position, None);
        }
        if rare_indent.is_none() && code.starts_with(RARE) {
            parts.push(Part { text: &body[start..position], is_rare: false });
            (start, rare_indent) = (position, Some(indent));
        }
        position += line.len();
    }
    parts.push(Part { text: &body[start..], is_rare: rare_indent.is_some() });
    parts
}

/// Whether a text has the function of this name.
fn defines(text: &str, name: &str) -> bool {
    text.contains(&format!("local function {name}("))
}

/// A function, or what stands between two.
struct Block<'s> {
    name: Option<&'s str>,
    text: &'s str,
}

fn blocks(shared: &str) -> Vec<Block<'_>> {
    const BEGIN: &str = "local function ";
    let mut blocks = Vec::new();
    let (mut start, mut position, mut name) = (0, 0, None);
    for line in shared.split_inclusive('\n') {
        if let (None, Some(rest)) = (name, line.strip_prefix(BEGIN)) {
            blocks.push(Block { name: None, text: &shared[start..position] });
            start = position;
            name = rest.split('(').next();
        }
        position += line.len();
        if name.is_some() && line.trim_end() == "end" {
            blocks.push(Block { name: name.take(), text: &shared[start..position] });
            start = position;
        }
    }
    blocks.push(Block { name, text: &shared[start..] });
    blocks
}

/// Whether a text calls the function of this name, and not one whose name ends so.
fn calls(text: &str, name: &str) -> bool {
    let is_part_of_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.';
    text.match_indices(name).any(|(at, _)| {
        let before = at.checked_sub(1).map(|before| text.as_bytes()[before]);
        let after = text.as_bytes().get(at + name.len());
        !before.is_some_and(is_part_of_name) && after == Some(&b'(')
    })
}

/// Whether a name occurs in a text, and not as part of a longer one.
fn names(text: &str, name: &str) -> bool {
    let is_part_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    text.match_indices(name).any(|(at, _)| {
        let (before, after) = (&text.as_bytes()[..at], &text.as_bytes()[at + name.len()..]);
        !before.last().is_some_and(is_part_of_name) && !after.first().is_some_and(is_part_of_name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_called_is_kept() {
        let shared = "local MOST = 1\n\
                      local function park()\n  if true then\n  end\nend\n\
                      local function unpark()\n  ring(MOST)\nend\n\
                      local function ring()\nend\n";
        let kept = called(shared, "unpark()\n");
        assert!(!kept.contains("function park"));
        assert!(kept.contains("function unpark") && kept.contains("function ring"));
        assert!(kept.starts_with("local MOST"));
        assert_eq!(called(shared, "x.park(unpark)\n"), "local MOST = 1\n");
    }

    /// Lawful Lua failed where it called what was left out, behind writes already made.
    #[test]
    fn a_name_is_enough_in_what_others_have_written() {
        let shared = "local function now_ms()\nend\n";
        for body in
            ["now_ms ()", "local f = now_ms", "x = 'a'..now_ms()", "f(now_ms)", "now_ms\n()"]
        {
            assert_eq!(named(shared, body), shared, "{body}");
        }
        for body in ["know_ms()", "now_ms2()", "now_m()", ""] {
            assert_eq!(named(shared, body), "", "{body}");
        }
    }

    /// A claim made more than a dozen functions each time, and called two or three of them.
    #[test]
    fn what_only_rare_branches_call_is_made_there() {
        let shared = "local MOST = 1\n\
                      local function park()\nend\n\
                      local function unpark()\n  ring(MOST)\nend\n\
                      local function ring()\nend\n";
        let body = "park()\n\
                    if x then\n  \
                    -- Rare: almost never.\n  \
                    unpark()\n  \
                    park()\n\
                    else\n  \
                    y()\n\
                    end\n";
        let (top, placed) = placed(shared, body);
        assert_eq!(top, "local MOST = 1\nlocal function park()\nend\n");
        let wanted = "park()\n\
                      if x then\n\
                      local function unpark()\n  ring(MOST)\nend\n\
                      local function ring()\nend\n  \
                      -- Rare: almost never.\n  \
                      unpark()\n  \
                      park()\n\
                      else\n  \
                      y()\n\
                      end\n";
        assert_eq!(placed, wanted);
    }
}
