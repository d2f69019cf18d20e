//! What Redis says in other letters throughout: its replies are read as if they were in ours, so
//! that one word does not hide all that follows it in a case.

use crate::client::Reply;

/// The end of an error that a script has raised: `script: <digest or function>, on @user_script:1.`
/// or `... on =[C]:-1.`
const SCRIPT_BEGIN: &[u8] = b" script: ";
const SCRIPT_END: &[u8] = b", on ";
const NOSCRIPT_ADVICE: &[u8] = b" Please use EVAL.";

/// A reply of Redis, its errors spelled as Valkey and Russet spell them.
pub fn of_redis(reply: Reply) -> Reply {
    match reply {
        Reply::Error(text) => Reply::Error(error(text)),
        Reply::Array(items) => Reply::Array(items.into_iter().map(of_redis).collect()),
        other => other,
    }
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).rposition(|window| window == part)
}

/// Without the name of the script, and without advice.
fn error(text: Vec<u8>) -> Vec<u8> {
    if let Some(rest) = text.strip_suffix(NOSCRIPT_ADVICE) {
        return rest.to_vec();
    }
    let (Some(begin), Some(end)) = (find(&text, SCRIPT_BEGIN), find(&text, SCRIPT_END)) else {
        return text;
    };
    let name_at = begin + SCRIPT_BEGIN.len();
    if end < name_at {
        return text;
    }
    [&text[..name_at], &text[end + b", ".len()..]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_lose_the_name_of_their_script() {
        let spelled = |text: &str| of_redis(Reply::Error(text.into()));
        let plain = Reply::Error("ERR x script: on @user_script:1.".into());
        assert_eq!(spelled("ERR x script: abc123, on @user_script:1."), plain);
        assert_eq!(spelled("ERR x script: on @user_script:1."), plain);
        let native = Reply::Error("ERR x script: on =[C]:-1.".into());
        assert_eq!(spelled("ERR x script: abc123, on =[C]:-1."), native);
        assert_eq!(
            spelled("NOSCRIPT No matching script. Please use EVAL."),
            Reply::Error("NOSCRIPT No matching script.".into())
        );
        assert_eq!(of_redis(Reply::Int(1)), Reply::Int(1));
    }
}
