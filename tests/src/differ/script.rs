//! Calls put into scripts: by literals, by ARGV, and as scripts should be written, with the command
//! spelled out and its key in KEYS.

use russet_catalog::lookup;
use russet_catalog::spec::Arity;

use super::plan::Step;

/// Calls that one script makes at most.
const CALLS_MAX: usize = 4;

/// The calls of one script after another. How many go together depends on them alone, so that a
/// shortened plan is cut in the same way every time.
pub fn cut(steps: &[Step]) -> impl Iterator<Item = &[Step]> {
    let mut rest = steps;
    std::iter::from_fn(move || {
        let first = rest.first()?;
        let count = 1 + first.args.iter().map(Vec::len).sum::<usize>() % CALLS_MAX;
        let (calls, others) = rest.split_at(count.min(rest.len()));
        rest = others;
        Some(calls)
    })
}

/// How a script comes by the arguments of its calls.
#[derive(Clone, Copy)]
enum Form {
    Literals,
    Arguments,
    Keys,
}

/// EVAL of a script that makes these calls and returns all their replies.
pub fn eval(calls: &[Step]) -> Vec<Vec<u8>> {
    let args_len: usize = calls.iter().map(|call| call.args.len()).sum();
    let form = [Form::Literals, Form::Arguments, Form::Keys][args_len % 3];
    let (mut keys, mut arguments, mut replies) = (Vec::new(), Vec::new(), Vec::new());
    for call in calls {
        let made = match form {
            Form::Keys if has_key_first(call) => with_key(call, &mut keys, &mut arguments),
            Form::Arguments => {
                let from = arguments.len() + 1;
                arguments.extend(call.args.iter().cloned());
                format!("unpack(ARGV, {from}, {})", arguments.len())
            }
            _ => call.args.iter().map(|arg| literal(arg)).collect::<Vec<_>>().join(", "),
        };
        replies.push(format!("redis.pcall({made})"));
    }
    // Each in brackets: a call's last argument may be many, a table's element is one.
    let replies: Vec<String> = replies.iter().map(|reply| format!("({reply})")).collect();
    let script = format!("return {{{}}}", replies.join(", "));
    let mut eval = vec![b"EVAL".to_vec(), script.into_bytes(), keys.len().to_string().into_bytes()];
    eval.extend(keys);
    eval.extend(arguments);
    eval
}

/// Whether the first argument behind the name is a key, and there is one.
fn has_key_first(call: &Step) -> bool {
    let command = call.args.first().and_then(|name| lookup(name));
    command.is_some_and(|command| {
        let spec = command.spec();
        let least = match spec.arity {
            Arity::Exactly(args) | Arity::AtLeast(args) => usize::from(args),
        };
        russet_catalog::is_first_arg_only_key(command) && call.args.len() >= least.max(2)
    })
}

fn with_key(call: &Step, keys: &mut Vec<Vec<u8>>, arguments: &mut Vec<Vec<u8>>) -> String {
    keys.push(call.args[1].clone());
    let mut made = vec![literal(&call.args[0]), format!("KEYS[{}]", keys.len())];
    for arg in &call.args[2..] {
        arguments.push(arg.clone());
        made.push(format!("ARGV[{}]", arguments.len()));
    }
    made.join(", ")
}

/// A Lua literal of these bytes.
fn literal(bytes: &[u8]) -> String {
    let byte = |byte: &u8| match byte {
        b'"' | b'\\' => format!("\\{}", *byte as char),
        b' '..=b'~' => (*byte as char).to_string(),
        _ => format!("\\{byte:03}"),
    };
    format!("\"{}\"", bytes.iter().map(byte).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(args: &[&str]) -> Step {
        let args = args.iter().map(|arg| arg.as_bytes().to_vec()).collect();
        Step { connection: 0, args }
    }

    #[test]
    fn a_key_goes_to_keys_and_the_rest_to_argv() {
        let texts: Vec<String> = eval(&[call(&["GETRANGE", "k", "0", "1", "x"]), call(&["PING"])])
            .into_iter()
            .map(|arg| String::from_utf8(arg).unwrap())
            .collect();
        assert_eq!(texts[0], "EVAL");
        assert!(texts[1].contains("\"PING\""), "{}", texts[1]);
        let narrow =
            eval(&[call(&["GET", "k"]), call(&["SET", "k", "\r\"", "NX"]), call(&["X", "y"])]);
        assert_eq!(narrow.len(), 7, "{narrow:?}");
        assert!(String::from_utf8_lossy(&narrow[1]).contains("(\"GET\", KEYS[1])"));
        assert_eq!(narrow[2], b"2");
    }

    #[test]
    fn literals_hold_any_byte() {
        assert_eq!(literal(b"a\"\\\n\0\xff"), "\"a\\\"\\\\\\010\\000\\255\"");
    }

    #[test]
    fn a_cut_loses_no_call() {
        let steps: Vec<Step> = (0..30).map(|at| call(&["GET", &"k".repeat(at)])).collect();
        assert_eq!(cut(&steps).map(<[Step]>::len).sum::<usize>(), steps.len());
    }
}
