//! Attempts at one position, and the error of a wrong pattern.

use super::*;

fn end(text: &str, pattern: &str) -> Option<usize> {
    attempt(text, pattern).unwrap()
}

fn attempt(text: &str, pattern: &str) -> Result<Option<usize>, Malformed> {
    decided(&mut Matcher::default(), text, pattern)
}

/// Goes on in small pieces until the attempt is decided.
fn decided(matcher: &mut Matcher, text: &str, pattern: &str) -> Result<Option<usize>, Malformed> {
    matcher.begin(0);
    loop {
        let pattern = &pattern.as_bytes()[..visible_len(pattern.as_bytes())];
        match matcher.resume(text.as_bytes(), pattern, &mut 3)? {
            Progress::Matched(end) => return Ok(Some(end)),
            Progress::Failed => return Ok(None),
            Progress::Paused => {}
        }
    }
}

fn captured(text: &str, pattern: &str) -> Vec<String> {
    let mut matcher = Matcher::default();
    decided(&mut matcher, text, pattern).unwrap().expect("a match");
    let text_of = |capture: &Capture| match capture.extent {
        Extent::Bytes(len) => text[capture.start..capture.start + len].to_owned(),
        Extent::Position => format!("@{}", capture.start + 1),
        Extent::Open => "open".to_owned(),
    };
    matcher.captures().iter().map(text_of).collect()
}

#[test]
fn repetitions() {
    assert_eq!(end("aaab", "a*b"), Some(4));
    assert_eq!(end("aaab", "a*"), Some(3));
    assert_eq!(end("aaab", "a-"), Some(0));
    assert_eq!(end("aaab", "a-b"), Some(4));
    assert_eq!(end("b", "a+b"), None);
    assert_eq!(end("ab", "a?b"), Some(2));
    assert_eq!(end("b", "a?b"), Some(1));
    assert_eq!(end("ab", "a?ab"), Some(2));
    assert_eq!(end("aaa", "a*aaaa"), None);
    assert_eq!(end("aaa", "a*aaa$"), Some(3));
    assert_eq!(end("a$b", "a$b"), Some(3));
}

#[test]
fn classes_and_sets() {
    assert_eq!(end("x1_", "%a%d%p"), Some(3));
    assert_eq!(end("x1_", "%A"), None);
    assert_eq!(end("]", "[]]"), Some(1));
    assert_eq!(end("]", "[^]]"), None);
    assert_eq!(end("-", "[a-]"), Some(1));
    assert_eq!(end("b", "[a-c]"), Some(1));
    assert_eq!(end("]", "[%]]"), Some(1));
    assert_eq!(end("%", "%%"), Some(1));
    assert_eq!(end("a-", "[%a-]+"), Some(2));
    assert_eq!(end("c", "[%a-z]"), Some(1));
    assert_eq!(end("^", "[a^]"), Some(1));
    assert_eq!(end("\0", "%z"), Some(1));
}

#[test]
fn captures_open_close_and_go_back() {
    assert_eq!(captured("key=value", "(%w+)=(%w+)"), ["key", "value"]);
    assert_eq!(captured("abc", "()b?a()"), ["@1", "@2"]);
    assert_eq!(captured("abab", "(a(b))%1"), ["ab", "b"]);
    assert_eq!(captured("aab", "(a-)b"), ["aa"]);
    assert_eq!(captured("aab", "(a"), ["open"]);
    assert_eq!(captured("xay", "(x)(a-)(a*)y"), ["x", "", "a"]);
    assert_eq!(end("aa", "()%1"), None);
}

#[test]
fn balance_and_frontier() {
    assert_eq!(end("(a(b)c)d", "%b()"), Some(7));
    assert_eq!(end("(a(b)c", "%b()"), None);
    assert_eq!(end("xx", "%bxx"), Some(2));
    assert_eq!(end("THE", "%f[%a]%a+%f[%A]"), Some(3));
    assert_eq!(end("THE x", "%f[%s]"), None);
    assert_eq!(end("", "%f[%z]"), None);
}

#[test]
fn wrong_patterns() {
    let cases = [
        ("%", "malformed pattern (ends with '%')"),
        ("[a", "malformed pattern (missing ']')"),
        ("[%", "malformed pattern (missing ']')"),
        ("[]", "malformed pattern (missing ']')"),
        ("[^", "malformed pattern (missing ']')"),
        ("%f", "missing '[' after '%f' in pattern"),
        ("%b", "unbalanced pattern"),
        ("%bx", "unbalanced pattern"),
        ("%1", "invalid capture index"),
        ("(%1)", "invalid capture index"),
        ("%0", "invalid capture index"),
        (")", "invalid pattern capture"),
        ("())", "invalid pattern capture"),
        (&"()".repeat(33), "too many captures"),
    ];
    for (pattern, text) in cases {
        assert_eq!(attempt("a", pattern), Err(text), "{pattern}");
    }
    assert_eq!(attempt("a", "b%"), Ok(None), "what is not reached is not read");
    assert_eq!(attempt("a", &"()".repeat(32)), Ok(Some(0)));
}

#[test]
fn a_zero_byte_ends_the_pattern() {
    assert_eq!(end("ab", "a\0c"), Some(1));
}

#[test]
fn a_costly_pattern_pauses() {
    let text = "a".repeat(2000);
    let mut matcher = Matcher::default();
    matcher.begin(0);
    for _ in 0..100 {
        let progress = matcher.resume(text.as_bytes(), b"a*a*a*a*b", &mut 1000);
        assert_eq!(progress, Ok(Progress::Paused));
    }
}

/// A pattern as long as a request may be takes no more of the thread's stack than a short one.
#[test]
fn a_long_pattern_needs_no_deep_stack() {
    assert_eq!(end("aaa", &"a?".repeat(100_000)), Some(3));
    assert_eq!(end("aaa", &"a-".repeat(100_000)), Some(0));
}

/// What Lua's own matcher does, by calling itself, for items without captures.
fn by_recursion(text: &[u8], pattern: &[u8]) -> Option<usize> {
    let Some(&byte) = pattern.first() else { return Some(0) };
    let is_single = text.first().is_some_and(|it| byte == b'.' || *it == byte);
    let more = |rest: &[u8]| by_recursion(&text[1..], rest).map(|end| end + 1);
    match pattern.get(1) {
        Some(b'-') => {
            by_recursion(text, &pattern[2..]).or_else(|| is_single.then(|| more(pattern)).flatten())
        }
        Some(b'*') => (is_single.then(|| more(pattern)).flatten())
            .or_else(|| by_recursion(text, &pattern[2..])),
        Some(b'?') => (is_single.then(|| more(&pattern[2..])).flatten())
            .or_else(|| by_recursion(text, &pattern[2..])),
        _ => is_single.then(|| more(&pattern[1..])).flatten(),
    }
}

/// An item that takes as little as it can goes to the next byte that the pattern wants at once.
#[test]
fn lazy_items_end_where_lua_s_do() {
    let mut random = russet_base::Random::from_seed(1);
    for _ in 0..20_000 {
        let mut pattern = String::new();
        for _ in 0..=random.below(4) {
            pattern.push(char::from(b"aabc."[random.index(5)]));
            pattern.push_str(["", "", "-", "-", "*", "?"][random.index(6)]);
        }
        let text: String = (0..random.below(9)).map(|_| ['a', 'b', 'c'][random.index(3)]).collect();
        let wanted = by_recursion(text.as_bytes(), pattern.as_bytes());
        assert_eq!(end(&text, &pattern), wanted, "{pattern} in {text}");
    }
}
