//! Of the functions that several steps share, those that a step calls: a function that nobody calls
//! has keys that nobody knows, and the engine would lock all shards for it.

/// The text without the functions that `body` does not call, directly or through others. Functions
/// begin with `local function` and end with `end` at the beginning of a line; whatever else stands
/// there is kept.
pub(super) fn called(shared: &str, body: &str) -> String {
    let blocks = blocks(shared);
    let mut is_kept: Vec<bool> = blocks.iter().map(|block| block.name.is_none()).collect();
    let mut texts = vec![body];
    while let Some(text) = texts.pop() {
        for (block, kept) in blocks.iter().zip(&mut is_kept) {
            if !*kept && block.name.is_some_and(|name| calls(text, name)) {
                *kept = true;
                texts.push(block.text);
            }
        }
    }
    blocks.iter().zip(is_kept).filter(|(_, kept)| *kept).map(|(block, _)| block.text).collect()
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
}
