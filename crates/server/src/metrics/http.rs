//! The little of HTTP that a scrape needs: the head of one request, and one answer after which the
//! connection closes. Without sockets, so that it can be fed anything.

/// A head that is longer is refused.
pub const HEAD_BYTES_MAX: usize = 8 << 10;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'h> {
    /// Without a query.
    pub path: &'h str,
    /// Only the head of the answer is wanted.
    pub is_head: bool,
    pub wants_open_metrics: bool,
}

/// What has been read so far.
#[derive(Debug, PartialEq, Eq)]
pub enum Parsed<'h> {
    Incomplete,
    Request(Request<'h>),
    /// Answered with this status.
    Refused(u16),
}

pub fn parse(bytes: &[u8]) -> Parsed<'_> {
    let Some(end) = head_end(bytes) else {
        return if bytes.len() > HEAD_BYTES_MAX {
            Parsed::Refused(431)
        } else {
            Parsed::Incomplete
        };
    };
    if end > HEAD_BYTES_MAX {
        return Parsed::Refused(431);
    }
    match str::from_utf8(&bytes[..end]).ok().and_then(request) {
        Some(parsed) => parsed,
        None => Parsed::Refused(400),
    }
}

/// Where the empty line behind the head begins.
fn head_end(bytes: &[u8]) -> Option<usize> {
    bytes.windows(4).position(|part| part == b"\r\n\r\n")
}

fn request(head: &str) -> Option<Parsed<'_>> {
    let mut lines = head.split("\r\n");
    let mut words = lines.next()?.split(' ');
    let (method, target, version) = (words.next()?, words.next()?, words.next()?);
    if words.next().is_some() || !matches!(version, "HTTP/1.0" | "HTTP/1.1") {
        return None;
    }
    if !target.starts_with('/') || target.contains(char::is_control) {
        return None;
    }
    let mut wants_open_metrics = false;
    for line in lines {
        let (name, value) = line.split_once(':')?;
        if name.is_empty() || name.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return None;
        }
        if name.eq_ignore_ascii_case("accept") {
            wants_open_metrics |= value.contains("application/openmetrics-text");
        }
    }
    let is_head = match method {
        "GET" => false,
        "HEAD" => true,
        _ => return Some(Parsed::Refused(405)),
    };
    let path = target.split('?').next().unwrap_or(target);
    Some(Parsed::Request(Request { path, is_head, wants_open_metrics }))
}

/// What is sent back.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    status: u16,
    content_type: &'static str,
    body: String,
}

impl Answer {
    pub fn text(status: u16, content_type: &'static str, body: String) -> Self {
        Answer { status, content_type, body }
    }

    pub fn refusal(status: u16) -> Self {
        Answer::text(status, "text/plain; charset=utf-8", format!("{}\n", reason(status)))
    }

    pub fn bytes(&self, is_head: bool) -> Vec<u8> {
        let (status, length) = (self.status, self.body.len());
        let allow = if status == 405 { "Allow: GET, HEAD\r\n" } else { "" };
        let head = format!(
            "HTTP/1.1 {status} {}\r\nContent-Type: {}\r\nContent-Length: {length}\r\n{allow}\
             Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n\
             Connection: close\r\n\r\n",
            reason(status),
            self.content_type
        );
        let body = if is_head { "" } else { &self.body };
        [head.as_bytes(), body.as_bytes()].concat()
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        404 => "Not Found",
        405 => "Method Not Allowed",
        431 => "Request Header Fields Too Large",
        _ => "Service Unavailable",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_scrapers_send_is_understood() {
        let head = b"GET /metrics?x=1 HTTP/1.1\r\nHost: a:1\r\nAccept: \
                     application/openmetrics-text;version=1.0.0,text/plain\r\n\r\nrest";
        let request = Request { path: "/metrics", is_head: false, wants_open_metrics: true };
        assert_eq!(parse(head), Parsed::Request(request));
        let request = Request { path: "/", is_head: true, wants_open_metrics: false };
        assert_eq!(parse(b"HEAD / HTTP/1.0\r\n\r\n"), Parsed::Request(request));
        for len in 0..head.len() - "rest".len() {
            assert_eq!(parse(&head[..len]), Parsed::Incomplete, "{len}");
        }
    }

    #[test]
    fn what_nobody_should_send_is_refused() {
        for (head, status) in [
            (&b"POST /metrics HTTP/1.1\r\n\r\n"[..], 405),
            (b"GET /metrics\r\n\r\n", 400),
            (b"GET  /metrics HTTP/1.1\r\n\r\n", 400),
            (b"GET /metrics HTTP/2.0\r\n\r\n", 400),
            (b"GET http://a/metrics HTTP/1.1\r\n\r\n", 400),
            (b"GET /\x01 HTTP/1.1\r\n\r\n", 400),
            (b"GET /\xff HTTP/1.1\r\n\r\n", 400),
            (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400),
            (b"GET / HTTP/1.1\r\n : x\r\n\r\n", 400),
            (b"\r\n\r\n", 400),
            (b"*1\r\n$4\r\nPING\r\n\r\n\r\n", 400),
        ] {
            assert_eq!(parse(head), Parsed::Refused(status), "{}", head.escape_ascii());
        }
        let long = [b"GET /".as_slice(), &[b'a'; HEAD_BYTES_MAX], b" HTTP/1.1\r\n\r\n"].concat();
        assert_eq!(parse(&long), Parsed::Refused(431));
        assert_eq!(parse(&long[..HEAD_BYTES_MAX]), Parsed::Incomplete);
        assert_eq!(parse(&[b'a'; HEAD_BYTES_MAX + 1]), Parsed::Refused(431));
    }

    /// Random bytes, and heads with random bytes changed: an answer, never a panic.
    #[test]
    fn no_bytes_break_it() {
        let mut state = 7u64;
        let mut random = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize
        };
        let head = b"GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: */*\r\n\r\n";
        for _ in 0..20_000 {
            let mut bytes = head.to_vec();
            for _ in 0..random() % 8 {
                let at = random() % bytes.len();
                bytes[at] = random() as u8;
            }
            bytes.truncate(random() % (bytes.len() + 1));
            match parse(&bytes) {
                Parsed::Request(request) => assert!(request.path.starts_with('/')),
                Parsed::Refused(status) => assert!(matches!(status, 400 | 405)),
                Parsed::Incomplete => {}
            }
        }
    }

    #[test]
    fn a_head_has_the_length_of_the_body_it_leaves_out() {
        let answer = Answer::text(200, "text/plain", "body".to_owned());
        let [whole, head] = [false, true].map(|is_head| answer.bytes(is_head));
        let whole = String::from_utf8(whole).unwrap();
        assert_eq!(whole.strip_suffix("body").unwrap().as_bytes(), head);
        assert!(whole.contains("\r\nContent-Length: 4\r\n"));
        let refusal = String::from_utf8(Answer::refusal(405).bytes(false)).unwrap();
        assert!(refusal.contains("\r\nAllow: GET, HEAD\r\n"), "{refusal}");
    }
}
