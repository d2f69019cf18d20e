//! Names in a certificate, for `tls-auth-clients-user`, and until when it is good. Whether it is
//! good at all was found out before; here nothing is trusted but that its bytes are bytes.

/// Tags of DER.
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const INTEGER: u8 = 0x02;
/// Times with two and with four digits of the year.
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const OBJECT_IDENTIFIER: u8 = 0x06;
const OCTET_STRING: u8 = 0x04;
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;
/// Among the alternative names of a subject.
const URI: u8 = 0x86;
/// Strings of one byte or UTF-8 per character: UTF8String, PrintableString, T61String, IA5String.
const TEXTS: [u8; 4] = [0x0c, 0x13, 0x14, 0x16];

/// 2.5.4.3
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
/// 2.5.29.17
const SUBJECT_ALTERNATIVE_NAME: &[u8] = &[0x55, 0x1d, 0x11];

/// The first common name (CN) of the subject.
pub fn common_name(certificate: &[u8]) -> Option<&[u8]> {
    let mut subject = subject_and_rest(certificate)?.0;
    while let Some(mut attributes) = subject.next_of(SET) {
        while let Some(mut attribute) = attributes.next_of(SEQUENCE) {
            let is_it = attribute.next_of(OBJECT_IDENTIFIER)?.0 == COMMON_NAME;
            let (tag, value) = attribute.next()?;
            if is_it && TEXTS.contains(&tag) {
                return Some(value).filter(|name| is_name(name));
            }
        }
    }
    None
}

/// The URIs among the alternative names of the subject.
pub fn uri_names(certificate: &[u8]) -> Vec<&[u8]> {
    alternative_names(certificate).unwrap_or_default()
}

fn alternative_names(certificate: &[u8]) -> Option<Vec<&[u8]>> {
    let (_, mut rest) = subject_and_rest(certificate)?;
    while let Some((tag, value)) = rest.next() {
        if tag != EXTENSIONS {
            continue;
        }
        let mut extensions = Der(value).next_of(SEQUENCE)?;
        while let Some(mut extension) = extensions.next_of(SEQUENCE) {
            if extension.next_of(OBJECT_IDENTIFIER)?.0 != SUBJECT_ALTERNATIVE_NAME {
                continue;
            }
            // Whether it is critical may stand between.
            let content = extension.find(OCTET_STRING)?;
            let mut names = Der(content).next_of(SEQUENCE)?;
            let mut found = Vec::new();
            while let Some((tag, name)) = names.next() {
                if tag == URI && is_name(name) {
                    found.push(name);
                }
            }
            return Some(found);
        }
    }
    None
}

/// No user has such a name; cut at the zero it might be another's.
fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && !name.contains(&0)
}

/// Its number in capital hexadecimal digits, and the Unix time at which it expires.
pub fn serial_and_end(certificate: &[u8]) -> Option<(String, i64)> {
    let mut fields = fields(certificate)?;
    let number = fields.next_of(INTEGER)?.0;
    let (_signature, _issuer) = (fields.next()?, fields.next()?);
    let mut validity = fields.next_of(SEQUENCE)?;
    validity.next()?;
    let (tag, text) = validity.next()?;
    // A byte of zeros before it says that it is not negative.
    let number = number.strip_prefix(&[0]).filter(|rest| !rest.is_empty()).unwrap_or(number);
    let serial = number.iter().map(|byte| format!("{byte:02X}")).collect();
    Some((serial, unix_seconds(tag, text)?))
}

/// Of `YYMMDDHHMMSSZ` or `YYYYMMDDHHMMSSZ`.
fn unix_seconds(tag: u8, text: &[u8]) -> Option<i64> {
    let digits = text.strip_suffix(b"Z").filter(|digits| digits.iter().all(u8::is_ascii_digit))?;
    let number = |digits: &[u8]| {
        digits.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0'))
    };
    let (year, rest) = match tag {
        // Those from 50 on were of the last century.
        UTC_TIME => digits.split_at_checked(2).map(|(year, rest)| match number(year) {
            year @ 50.. => (1900 + year, rest),
            year => (2000 + year, rest),
        })?,
        GENERALIZED_TIME => digits.split_at_checked(4).map(|(year, rest)| (number(year), rest))?,
        _ => return None,
    };
    let parts: [&[u8]; 5] = rest.chunks_exact(2).collect::<Vec<_>>().try_into().ok()?;
    let [month, day, hour, minute, second] = parts.map(number);
    if rest.len() != 10 || !(1..=12).contains(&month) {
        return None;
    }
    // Days since 1970: years begin in March, so that the day of a leap year is the last of it.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let of_year = (153 * month + 2) / 5 + day - 1;
    let days =
        365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + of_year
            - 719_468;
    Some(((days * 24 + hour) * 60 + minute) * 60 + second)
}

/// What a certificate says, from its number on.
fn fields(certificate: &[u8]) -> Option<Der<'_>> {
    let mut fields = Der(certificate).next_of(SEQUENCE)?.next_of(SEQUENCE)?;
    let mut behind = fields;
    // The version may be missing.
    if behind.next()?.0 == VERSION {
        fields = behind;
    }
    Some(fields)
}

/// The subject of a certificate, and what stands behind it.
fn subject_and_rest(certificate: &[u8]) -> Option<(Der<'_>, Der<'_>)> {
    let mut fields = fields(certificate)?;
    let _number = fields.next()?;
    let (_signature, _issuer, _validity) = (fields.next()?, fields.next()?, fields.next()?);
    let subject = fields.next_of(SEQUENCE)?;
    Some((subject, fields))
}

/// Values of DER, one behind the other.
#[derive(Clone, Copy)]
struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    /// The tag and content of the next value.
    fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (&[tag, first], mut rest) = self.0.split_first_chunk::<2>()?;
        let mut len = usize::from(first);
        if first >= 0x80 {
            let count = usize::from(first & 0x7f);
            if count == 0 || count > size_of::<u32>() {
                return None;
            }
            let (digits, behind) = rest.split_at_checked(count)?;
            len = digits.iter().fold(0, |len, digit| len << 8 | usize::from(*digit));
            rest = behind;
        }
        let (content, behind) = rest.split_at_checked(len)?;
        self.0 = behind;
        Some((tag, content))
    }

    /// What is in the next value, if it has this tag.
    fn next_of(&mut self, tag: u8) -> Option<Der<'a>> {
        self.next().filter(|(found, _)| *found == tag).map(|(_, content)| Der(content))
    }

    /// The content of the first of the next values with this tag.
    fn find(&mut self, tag: u8) -> Option<&'a [u8]> {
        loop {
            let (found, content) = self.next()?;
            if found == tag {
                return Some(content);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn der(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
        let content = parts.concat();
        let mut out = vec![tag];
        match content.len() {
            len @ 0..128 => out.push(len as u8),
            len => out.extend([0x82, (len >> 8) as u8, len as u8]),
        }
        out.extend(content);
        out
    }

    fn attribute(id: &[u8], value: &[u8]) -> Vec<u8> {
        let id = der(OBJECT_IDENTIFIER, &[id]);
        der(SET, &[&der(SEQUENCE, &[&id, &der(0x0c, &[value])])])
    }

    /// A certificate with these names; what is around them is of the right form only.
    fn certificate(common_name: &[u8], alternatives: &[(u8, &[u8])]) -> Vec<u8> {
        let version = der(VERSION, &[&[2, 1, 2]]);
        let empty = der(SEQUENCE, &[]);
        let organization = attribute(&[0x55, 0x04, 0x0a], b"an organization");
        let subject = der(SEQUENCE, &[&organization, &attribute(COMMON_NAME, common_name)]);
        let names: Vec<Vec<u8>> =
            alternatives.iter().map(|(tag, name)| der(*tag, &[name])).collect();
        let names = der(SEQUENCE, &names.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let id = der(OBJECT_IDENTIFIER, &[SUBJECT_ALTERNATIVE_NAME]);
        let critical = [1, 1, 0xff];
        let other = der(SEQUENCE, &[&der(OBJECT_IDENTIFIER, &[&[0x55, 0x1d, 0x0f]])]);
        let extension = der(SEQUENCE, &[&id, &critical, &der(OCTET_STRING, &[&names])]);
        let extensions = der(EXTENSIONS, &[&der(SEQUENCE, &[&other, &extension])]);
        let number = [INTEGER, 2, 0, 0xa5];
        let (from, until) =
            (der(UTC_TIME, &[b"240101000000Z"]), der(GENERALIZED_TIME, &[b"20500301000000Z"]));
        let validity = der(SEQUENCE, &[&from, &until]);
        let fields =
            [&version[..], &number, &empty, &empty, &validity, &subject, &empty, &extensions];
        der(SEQUENCE, &[&der(SEQUENCE, &fields), &empty])
    }

    #[test]
    fn the_names_of_a_certificate_are_found() {
        let names: [(u8, &[u8]); 4] =
            [(0x82, b"host"), (URI, b"urn:user:app"), (URI, b"cut\0off"), (URI, b"urn:2")];
        let made = certificate(b"app", &names);
        assert_eq!(common_name(&made), Some(&b"app"[..]));
        assert_eq!(uri_names(&made), [&b"urn:user:app"[..], b"urn:2"]);
        assert_eq!(common_name(&certificate(b"app\0more", &[])), None);
    }

    #[test]
    fn its_number_and_its_end_are_read() {
        let made = certificate(b"app", &[]);
        assert_eq!(serial_and_end(&made), Some(("A5".to_owned(), 2_529_705_600)));
        let times: [(u8, &[u8], Option<i64>); 7] = [
            (UTC_TIME, b"700101000000Z", Some(0)),
            (UTC_TIME, b"000229235959Z", Some(951_868_799)),
            (UTC_TIME, b"491231235959Z", Some(2_524_607_999)),
            (GENERALIZED_TIME, b"20261216171035Z", Some(1_797_441_035)),
            (GENERALIZED_TIME, b"20261316171035Z", None),
            (GENERALIZED_TIME, b"2026", None),
            (INTEGER, b"700101000000Z", None),
        ];
        for (tag, text, seconds) in times {
            assert_eq!(unix_seconds(tag, text), seconds, "{}", text.escape_ascii());
        }
    }

    #[test]
    fn what_is_no_certificate_names_nobody() {
        let made = certificate(b"app", &[(URI, b"urn:user:app")]);
        for end in 0..made.len() {
            assert_eq!(common_name(&made[..end]), None);
            assert!(uri_names(&made[..end]).is_empty());
        }
        for at in 0..made.len() {
            for value in [0, 1, 0x7f, 0x80, 0x84, 0xff] {
                let mut broken = made.clone();
                broken[at] = value;
                // Whatever they say, they say something.
                let _ = (common_name(&broken), uri_names(&broken), serial_and_end(&broken));
            }
        }
    }
}
