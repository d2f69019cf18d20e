//! What a reply should be: the notation of `<` lines, matching, and printing replies in it.
//!
//! One notation serves both protocols: a map is a map in RESP3 and a flat array in RESP2, `#t` is
//! `:1` there, and so on. Only replies that differ in more than that need `<2` and `<3` lines.

use super::quoting::{glob, quote, quoted};
use crate::client::{Reply, Resp};

/// The order of a collection's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Fixed,
    Any,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Expect {
    Status(Vec<u8>),
    Error(Vec<u8>),
    Int(i64),
    Bulk(Vec<u8>),
    Nil,
    NilArray,
    Double(Vec<u8>),
    Bool(bool),
    Verbatim(Vec<u8>, Vec<u8>),
    Big(Vec<u8>),
    Array(Items),
    Set(Items),
    Push(Items),
    Map(Items),
    // Patterns.
    Any,
    IntIn(i64, i64),
    BulkLike(Vec<u8>),
    ErrorLike(Vec<u8>),
    /// String-like, containing each of these.
    Has(Vec<Vec<u8>>),
    OneOf(Vec<Expect>),
    /// Any scalar, kept under a name for later lines.
    Save(String),
}

/// Elements of a collection; of a map, keys and values in turn.
#[derive(Clone, Debug, PartialEq)]
pub struct Items {
    pub items: Vec<Expect>,
    pub order: Order,
    /// Ended in `...`: more may follow.
    pub open: bool,
}

/// Reads one expectation: the text after `<`.
pub fn parse(text: &str) -> Result<Expect, String> {
    let text = text.trim();
    // At the top, a status or an error is the rest of the line and needs no quotes.
    if let Some(rest) = text.strip_prefix('+').filter(|rest| !rest.starts_with('"')) {
        return Ok(Expect::Status(rest.as_bytes().to_vec()));
    }
    if let Some(rest) = text.strip_prefix('-').filter(|rest| !rest.starts_with('"')) {
        return Ok(Expect::Error(rest.as_bytes().to_vec()));
    }
    let mut parser = Parser { text: text.as_bytes(), at: 0 };
    let expect = parser.value()?;
    parser.skip_blanks();
    match parser.at == text.len() {
        true => Ok(expect),
        false => Err(format!("more after the expectation: {:?}", &text[parser.at..])),
    }
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
}

impl Parser<'_> {
    fn value(&mut self) -> Result<Expect, String> {
        self.skip_blanks();
        match self.peek() {
            Some(b'"') => Ok(Expect::Bulk(self.quoted()?)),
            Some(b'+') => Ok(Expect::Status(self.marked_text()?)),
            Some(b'-') => Ok(Expect::Error(self.marked_text()?)),
            Some(b'<') => self.pattern(),
            Some(b'=') => self.verbatim(),
            Some(b'[') => Ok(Expect::Array(self.items(b']', Order::Fixed)?)),
            Some(b'{') => Ok(Expect::Map(self.items(b'}', Order::Fixed)?)),
            Some(_) => self.by_token(),
            None => Err("nothing is expected".to_owned()),
        }
    }

    fn by_token(&mut self) -> Result<Expect, String> {
        let token = self.token();
        let number = |text: &str| text.parse().map_err(|_| format!("not an integer: {text:?}"));
        match (token.as_str(), self.peek()) {
            ("nil", _) => Ok(Expect::Nil),
            ("nil-array", _) => Ok(Expect::NilArray),
            ("#t", _) => Ok(Expect::Bool(true)),
            ("#f", _) => Ok(Expect::Bool(false)),
            ("unordered", Some(b'[')) => Ok(Expect::Array(self.items(b']', Order::Any)?)),
            ("unordered", Some(b'{')) => Ok(Expect::Map(self.items(b'}', Order::Any)?)),
            ("~", Some(b'[')) => Ok(Expect::Set(self.items(b']', Order::Any)?)),
            ("push", Some(b'[')) => Ok(Expect::Push(self.items(b']', Order::Fixed)?)),
            (token, _) => match token.as_bytes().first() {
                Some(b':') => Ok(Expect::Int(number(&token[1..])?)),
                Some(b',') => Ok(Expect::Double(token.as_bytes()[1..].to_vec())),
                Some(b'(') => Ok(Expect::Big(token.as_bytes()[1..].to_vec())),
                _ => Err(format!("not an expectation: {token:?}")),
            },
        }
    }

    /// `+token`, `-token` or `-"several words"`, inside a collection.
    fn marked_text(&mut self) -> Result<Vec<u8>, String> {
        self.at += 1;
        match self.peek() {
            Some(b'"') => self.quoted(),
            _ => Ok(self.token().into_bytes()),
        }
    }

    /// `=txt:"..."`
    fn verbatim(&mut self) -> Result<Expect, String> {
        let format =
            self.text.get(self.at + 1..self.at + 4).ok_or("`=` without a format")?.to_vec();
        self.at += 4;
        if self.peek() != Some(b':') {
            return Err("`=` wants three letters and a colon".to_owned());
        }
        self.at += 1;
        Ok(Expect::Verbatim(format, self.quoted()?))
    }

    /// From the opening bracket on. A colon after a map's key is for the eye.
    fn items(&mut self, end: u8, order: Order) -> Result<Items, String> {
        self.at += 1;
        let mut items = Items { items: Vec::new(), order, open: false };
        loop {
            self.skip_blanks();
            match self.peek() {
                None => return Err(format!("no closing {:?}", char::from(end))),
                Some(byte) if byte == end => {
                    self.at += 1;
                    return Ok(items);
                }
                Some(b'.') if self.text[self.at..].starts_with(b"...") => {
                    items.open = true;
                    self.at += 3;
                }
                Some(_) => {
                    items.items.push(self.value()?);
                    if end == b'}' && items.items.len() % 2 == 1 && self.peek() == Some(b':') {
                        self.at += 1;
                    }
                }
            }
        }
    }

    fn pattern(&mut self) -> Result<Expect, String> {
        self.at += 1;
        let name = self.token();
        self.skip_blanks();
        let expect = match name.as_str() {
            "any" => Expect::Any,
            "int" => self.range()?,
            "bulk" => Expect::BulkLike(self.glob_text()?),
            "error" => Expect::ErrorLike(self.glob_text()?),
            "save" => Expect::Save(self.token()),
            "has" => {
                let mut parts = Vec::new();
                while self.peek() == Some(b'"') {
                    parts.push(self.quoted()?);
                    self.skip_blanks();
                }
                Expect::Has(parts)
            }
            "one-of" => {
                let mut choices = Vec::new();
                while self.peek() != Some(b'>') {
                    choices.push(self.value()?);
                    self.skip_blanks();
                }
                Expect::OneOf(choices)
            }
            other => return Err(format!("no such pattern: <{other}>")),
        };
        self.skip_blanks();
        match self.peek() {
            Some(b'>') => self.at += 1,
            _ => return Err(format!("<{name} without its >")),
        }
        Ok(expect)
    }

    fn range(&mut self) -> Result<Expect, String> {
        let token = self.token();
        let bound = |text: &str, open: i64| match text {
            "" => Ok(open),
            digits => digits.parse().map_err(|_| format!("not an integer: {digits:?}")),
        };
        match token.split_once("..") {
            _ if token.is_empty() => Ok(Expect::IntIn(i64::MIN, i64::MAX)),
            Some((low, high)) => Ok(Expect::IntIn(bound(low, i64::MIN)?, bound(high, i64::MAX)?)),
            None => Err(format!("not a range: {token:?}")),
        }
    }

    fn glob_text(&mut self) -> Result<Vec<u8>, String> {
        match self.peek() {
            Some(b'"') => self.quoted(),
            Some(b'>') | None => Ok(b"*".to_vec()),
            Some(_) => Ok(self.token().into_bytes()),
        }
    }

    fn quoted(&mut self) -> Result<Vec<u8>, String> {
        if self.peek() != Some(b'"') {
            return Err("a quoted text is missing".to_owned());
        }
        let (text, used) = quoted(&self.text[self.at..])?;
        self.at += used;
        Ok(text)
    }

    /// Up to a blank, a bracket, or a closing `>`.
    fn token(&mut self) -> String {
        let rest = &self.text[self.at..];
        let stops = |b: &u8| b.is_ascii_whitespace() || b"[]{}<>~\"".contains(b);
        let length = rest.iter().position(stops).unwrap_or(rest.len());
        self.at += length;
        if length == 0 && rest.starts_with(b"~[") {
            self.at += 1;
            return "~".to_owned();
        }
        String::from_utf8_lossy(&rest[..length]).trim_end_matches(':').to_owned()
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn skip_blanks(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }
}

impl Expect {
    /// Whether the reply is as expected; what `<save>` caught is appended to `saved`.
    pub fn matches(&self, reply: &Reply, resp: Resp, saved: &mut Saved) -> bool {
        let two = resp == Resp::V2;
        match (self, reply) {
            (Expect::Any, _) => true,
            (Expect::Status(want), Reply::Status(got)) => want == got,
            (Expect::Error(want), Reply::Error(got)) => want == got,
            (Expect::ErrorLike(want), Reply::Error(got)) => glob(want, got),
            (Expect::Int(want), Reply::Int(got)) => want == got,
            (Expect::IntIn(low, high), Reply::Int(got)) => (low..=high).contains(&got),
            (Expect::Bulk(want), Reply::Bulk(got)) => want == got,
            (Expect::BulkLike(want), Reply::Bulk(got)) => glob(want, got),
            (Expect::Nil, Reply::NullBulk) | (Expect::NilArray, Reply::NullArray) => two,
            (Expect::Nil | Expect::NilArray, Reply::Null) => !two,
            (Expect::Double(want), Reply::Bulk(got)) => two && want == got,
            (Expect::Double(want), Reply::Double(got)) => !two && want == got,
            (Expect::Bool(want), Reply::Int(got)) => two && i64::from(*want) == *got,
            (Expect::Bool(want), Reply::Bool(got)) => !two && want == got,
            (Expect::Big(want), Reply::Bulk(got)) => two && want == got,
            (Expect::Big(want), Reply::Big(got)) => !two && want == got,
            (Expect::Verbatim(_, want), Reply::Bulk(got)) => two && want == got,
            (Expect::Verbatim(format, want), Reply::Verbatim { format: got_format, text }) => {
                !two && want == text && format == got_format
            }
            (Expect::Has(parts), reply) => match reply.text() {
                Some(text) => parts.iter().all(|part| contains(text, part)),
                None => false,
            },
            (Expect::OneOf(choices), reply) => {
                choices.iter().any(|choice| choice.matches(reply, resp, saved))
            }
            (Expect::Save(name), reply) => match scalar(reply) {
                Some(text) => {
                    saved.push((name.clone(), text));
                    true
                }
                None => false,
            },
            (Expect::Array(items), Reply::Array(got)) => items.match_all(got, resp, saved),
            (Expect::Set(items), Reply::Array(got)) if two => items.match_all(got, resp, saved),
            (Expect::Set(items), Reply::Set(got)) if !two => items.match_all(got, resp, saved),
            (Expect::Push(items), Reply::Array(got)) if two => items.match_all(got, resp, saved),
            (Expect::Push(items), Reply::Push(got)) if !two => items.match_all(got, resp, saved),
            (Expect::Map(items), Reply::Array(got)) if two && got.len() % 2 == 0 => {
                let pairs: Vec<(&Reply, &Reply)> = got.chunks(2).map(|p| (&p[0], &p[1])).collect();
                items.match_pairs(&pairs, resp, saved)
            }
            (Expect::Map(items), Reply::Map(got)) if !two => {
                let pairs: Vec<(&Reply, &Reply)> = got.iter().map(|(k, v)| (k, v)).collect();
                items.match_pairs(&pairs, resp, saved)
            }
            _ => false,
        }
    }
}

impl Expect {
    /// Which parts a `<has>` does not find: its replies are too long to be compared by eye.
    pub fn lacks(&self, reply: &Reply) -> String {
        match (self, reply.text()) {
            (Expect::Has(parts), Some(text)) => {
                let lacking = parts.iter().filter(|part| !contains(text, part));
                let list: Vec<String> = lacking.map(|part| quote(part)).collect();
                format!("without {}: ", list.join(" "))
            }
            _ => String::new(),
        }
    }
}

/// What `<save name>` caught.
pub type Saved = Vec<(String, Vec<u8>)>;

impl Items {
    fn match_all(&self, got: &[Reply], resp: Resp, saved: &mut Saved) -> bool {
        let mut left: Vec<&Reply> = got.iter().collect();
        for (at, want) in self.items.iter().enumerate() {
            let found = match self.order {
                Order::Fixed => got.get(at).filter(|g| want.matches(g, resp, saved)).map(|_| 0),
                Order::Any => left.iter().position(|g| want.matches(g, resp, saved)),
            };
            match found {
                Some(at) => drop(left.remove(at)),
                None => return false,
            }
        }
        self.open || left.is_empty()
    }

    fn match_pairs(&self, got: &[(&Reply, &Reply)], resp: Resp, saved: &mut Saved) -> bool {
        let mut left = got.to_vec();
        for pair in self.items.chunks(2) {
            let [key, value] = pair else { return false };
            let found = match self.order {
                Order::Fixed if left.is_empty() => None,
                Order::Fixed => key.matches(left[0].0, resp, saved).then_some(0),
                Order::Any => left.iter().position(|(k, _)| key.matches(k, resp, saved)),
            };
            match found {
                Some(at) if value.matches(left[at].1, resp, saved) => drop(left.remove(at)),
                _ => return false,
            }
        }
        self.open || left.is_empty()
    }
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    part.is_empty() || text.windows(part.len()).any(|window| window == part)
}

fn scalar(reply: &Reply) -> Option<Vec<u8>> {
    match reply {
        Reply::Int(value) => Some(value.to_string().into_bytes()),
        other => other.text().map(<[u8]>::to_vec),
    }
}

/// A reply in the notation of `<` lines.
pub fn print(reply: &Reply) -> String {
    match reply {
        Reply::Status(text) if is_plain(text) => format!("+{}", String::from_utf8_lossy(text)),
        Reply::Error(text) if is_plain(text) => format!("-{}", String::from_utf8_lossy(text)),
        other => print_inner(other),
    }
}

/// As [`print`], inside a collection, where texts of several words are quoted.
fn print_inner(reply: &Reply) -> String {
    let list = |items: &[Reply]| items.iter().map(print_inner).collect::<Vec<_>>().join(" ");
    match reply {
        Reply::Status(text) if is_bare_token(text) => format!("+{}", String::from_utf8_lossy(text)),
        Reply::Status(text) => format!("+{}", quote(text)),
        Reply::Error(text) => format!("-{}", quote(text)),
        Reply::Int(value) => format!(":{value}"),
        Reply::Bulk(text) => quote(text),
        Reply::Null | Reply::NullBulk => "nil".to_owned(),
        Reply::NullArray => "nil-array".to_owned(),
        Reply::Array(items) => format!("[{}]", list(items)),
        Reply::Set(items) => format!("~[{}]", list(items)),
        Reply::Push(items) => format!("push[{}]", list(items)),
        Reply::Map(pairs) => {
            let pair = |(k, v): &(Reply, Reply)| format!("{}: {}", print_inner(k), print_inner(v));
            format!("{{{}}}", pairs.iter().map(pair).collect::<Vec<_>>().join(" "))
        }
        Reply::Double(text) => format!(",{}", String::from_utf8_lossy(text)),
        Reply::Bool(true) => "#t".to_owned(),
        Reply::Bool(false) => "#f".to_owned(),
        Reply::Verbatim { format, text } => {
            format!("={}:{}", String::from_utf8_lossy(format), quote(text))
        }
        Reply::Big(digits) => format!("({}", String::from_utf8_lossy(digits)),
    }
}

fn is_plain(text: &[u8]) -> bool {
    text.iter().all(|byte| (0x20..0x7f).contains(byte))
        && text.trim_ascii() == text
        && !text.is_empty()
        && text[0] != b'"'
}

fn is_bare_token(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_' || *b == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agrees(text: &str, reply: &Reply, resp: Resp) -> bool {
        parse(text).unwrap().matches(reply, resp, &mut Vec::new())
    }

    fn bulk(text: &str) -> Reply {
        Reply::Bulk(text.as_bytes().to_vec())
    }

    #[test]
    fn one_notation_serves_both_protocols() {
        let flat = Reply::Array(vec![bulk("a"), Reply::Int(1)]);
        let map = Reply::Map(vec![(bulk("a"), Reply::Int(1))]);
        assert!(agrees("{\"a\": :1}", &flat, Resp::V2));
        assert!(agrees("{\"a\": :1}", &map, Resp::V3));
        assert!(!agrees("{\"a\": :1}", &flat, Resp::V3));
        assert!(agrees("nil", &Reply::NullBulk, Resp::V2));
        assert!(!agrees("nil", &Reply::NullArray, Resp::V2));
        assert!(agrees("nil-array", &Reply::Null, Resp::V3));
        assert!(agrees("#t", &Reply::Int(1), Resp::V2));
        assert!(!agrees("#t", &Reply::Int(1), Resp::V3));
    }

    #[test]
    fn patterns_and_order() {
        let items = Reply::Array(vec![bulk("b"), bulk("a"), Reply::Int(95)]);
        assert!(agrees("unordered[<int 90..100> \"a\" \"b\"]", &items, Resp::V2));
        assert!(agrees("[\"b\" ...]", &items, Resp::V2));
        assert!(!agrees("[\"b\" \"a\"]", &items, Resp::V2));
        assert!(!agrees("[\"b\" \"a\" <int ..94>]", &items, Resp::V2));
        assert!(agrees("[<bulk b*> <any> <save x>]", &items, Resp::V2));
        assert!(agrees("[<one-of \"a\" \"b\"> ...]", &items, Resp::V2));
        assert!(agrees("<has \"ab\" \"cd\">", &bulk("xabcdx"), Resp::V2));
        assert!(agrees("~[\"a\"]", &Reply::Set(vec![bulk("a")]), Resp::V3));
    }

    #[test]
    fn printing_round_trips() {
        let error = Reply::Error(b"ERR no [such] thing".to_vec());
        let double = Reply::Double(b"1.5".to_vec());
        let text = Reply::Verbatim { format: b"txt".to_vec(), text: b"a\nb".to_vec() };
        let map = Reply::Map(vec![(bulk("k"), Reply::Set(vec![Reply::Bool(true)]))]);
        let reply = Reply::Array(vec![error.clone(), double, text, map, Reply::Null]);
        assert!(agrees(&print(&reply), &reply, Resp::V3));
        assert!(agrees(&print(&error), &error, Resp::V3));
    }

    #[test]
    fn refuses_what_it_cannot_read() {
        for text in ["", "[:1", "OK", "<int 5>", "<nothing>", ":x", "\"a\" \"b\""] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
