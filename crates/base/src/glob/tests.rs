//! Golden answers of a real server, and what the table can't show.

use super::*;

const EXACT: &[(&[u8], &[u8], bool)] = &[
    (b"**?[a-c^", b"ccacb", true),
    (b"**[[b^cz", b"[\x00z*b", true),
    (b"**[ab\\?", b"bbccbb", true),
    (b"**[\x80A?c", b"\xff*A", true),
    (b"**\\A^\\[", b"a\x00", false),
    (b"*?z[[b^", b"-z^", true),
    (b"*[*\\[*a", b"a*", true),
    (b"*[?-Ab*", b"\x80*b\x80b", true),
    (b"*[[*\xff", b"]\\zb[*", true),
    (b"*[[\\\\bA[", b"ab]cb", true),
    (b"*[\\a\\]\x80", b"bbcb]a", true),
    (b"*[^-", b"\xffa", true),
    (b"*[^\x80", b"\x80\x80-", true),
    (b"*[a?\x80\\[", b"^a", true),
    (b"*[aa\\", b"b\xffbA\\", true),
    (b"*[c*c", b"]\\zb[*", true),
    (b"*[c\\]?a", b"bc", true),
    (b"*[c\x80]b[", b"a", false),
    (b"*[z\\cb[?", b"acaac", true),
    (b"*[\x80[*Ac", b"*A", true),
    (b"*[\xff-]]", b"cc]", true),
    (b"*[\xff[[c[[", b"ac", true),
    (b"*]?c-", b"\\cz\x80\xff", false),
    (b"*b]bca\\?", b"ab\x80", false),
    (b"*c[c[\\", b"^c\\", true),
    (b"-*[\x80", b"]a]b]c", false),
    (b"-[[c]", b"[Abz", false),
    (b"-]][^", b"ccacb", false),
    (b"?*[?*?b]", b"c?", true),
    (b"?*[^[\\", b"a]", true),
    (b"?*[cA\\b-", b"\\c^\x00ab", true),
    (b"?-ca[b*", b"]a", false),
    (b"?Ab\\][*", b"][", false),
    (b"?[?cc[c*", b"a*", true),
    (b"?[\\?--]", b"b[", true),
    (b"?[a-^*", b"ba", true),
    (b"?[cA^c?c", b"*c", true),
    (b"?\\c*[-b", b"ccacb", true),
    (b"?]?[]*?[", b"\x80\x80b\x80\xff", false),
    (b"[*AA*a\\", b"A", true),
    (b"[*[", b"\x80\x80b\x80\xff", false),
    (b"[?A[]z**", b"]aaa", false),
    (b"[?\\]", b"\\az", false),
    (b"[A*", b"accbc", false),
    (b"[Aa?**", b"?", true),
    (b"[\\[b[c", b"[", true),
    (b"[\\\x80\x80\\[[^", b"baa]ca", false),
    (b"[]?]-[", b"bbc", false),
    (b"[^*a\\]]*", b"[cA", true),
    (b"[^?]", b"czzz^", false),
    (b"[^[[", b"\x80*", false),
    (b"[^\\[-\\]*", b"c", true),
    (b"[^a", b"b", true),
    (b"[^c*]", b"^-", false),
    (b"[z*\\?\x80b^", b"\x80", true),
    (b"[zbc\x80-b", b"c", true),
    (b"\\-[^c-", b"-\x80", true),
    (b"\\-ca^[^", b"\xff\x00a*", false),
    (b"\\a]c[", b"]bb[c\x00", false),
    (b"\\b[[?", b"abccbb", false),
    (b"]b[", b"caa", false),
    (b"]b\\\\cbc]", b"\\[", false),
    (b"]cac*^]", b"czzz^", false),
    (b"^[[[-a", b"\xff*A", false),
    (b"^[[c[?^", b"bcc", false),
    (b"^[]c*^^", b"a]a", false),
    (b"a*c[bca", b"ab]cb", true),
    (b"aa[", b"c*\x80", false),
    (b"a\xff^]\\*c?", b"\xff", false),
    (b"b*^-^?][", b"Abc[", false),
    (b"b-*A", b"\xffa", false),
    (b"b?*a]AA", b"c]a", false),
    (b"bc**", b"bc]", true),
    (b"cba]][a]", b"\x80", false),
    (b"za]\\-c[c", b"]]b", false),
    (b"\x80\\^]\x80\\*", b"b]", false),
    (b"\x80a]a[**z", b"^?]\\-\\", false),
    (b"\x80c?*b", b"\xff\x00a*", false),
    (b"\xff[za\x80", b"^-", false),
    (b"\xff\xff\\*[[-", b"\xffA\x80*]", false),
];

const IGNORING_CASE: &[(&[u8], &[u8], bool)] = &[
    (b"*???", b"_z9", true),
    (b"*?[[z", b"BbaZ", true),
    (b"*[B[^", b"aAb", true),
    (b"*[[B", b"za_b", true),
    (b"*[^?", b"ZZ", true),
    (b"*[^[[b]", b"BA9", true),
    (b"*[^\\?9[", b"9Bzz", true),
    (b"*[a[-[", b"ZbA", true),
    (b"*[b\\", b"Ab9B", true),
    (b"*\\\\^_*", b"B_", false),
    (b"*]*Zb*[", b"_ba", false),
    (b"*]9??-", b"z", false),
    (b"?*?[b-\\", b"_b_", true),
    (b"?*[z\\\\_", b"9az_", true),
    (b"??[]", b"b9_b", false),
    (b"?[-?\\", b"bb", false),
    (b"?[9?B", b"99", true),
    (b"?[?[*B*", b"bb", true),
    (b"?[\\]z^", b"aZ", true),
    (b"?\\A*", b"9AA", true),
    (b"?\\A[\\[", b"9", false),
    (b"?\\Z", b"ZZ", true),
    (b"A9[-]", b"_z9", false),
    (b"A[^", b"a9", true),
    (b"B-a^*?]", b"B9ZZ", false),
    (b"Ba_-[", b"99", false),
    (b"ZZ*[?A", b"bA", false),
    (b"Z[[\\9zB", b"Az", false),
    (b"[-*\\^]-", b"B", false),
    (b"[-z", b"B_", false),
    (b"[?*[z[", b"z", true),
    (b"[?B_-", b"b", true),
    (b"[?b[9]*", b"B_", true),
    (b"[Z[", b"Z", true),
    (b"[Z_[^_*", b"Z", true),
    (b"[[**[*", b"bb", false),
    (b"[_9", b"BB", false),
    (b"[_A-*z", b"9", true),
    (b"[a-^?", b"AA_B", false),
    (b"[a]*", b"AA_B", true),
    (b"\\*[\\Z[]", b"Z_BB", false),
    (b"\\Z**z\\", b"_z9", false),
    (b"\\[Z\\]-", b"aB", false),
    (b"\\[[]9^", b"Z", false),
    (b"\\[b?9[", b"aAb", false),
    (b"\\[zA[-", b"A", false),
    (b"]*[[", b"aZ", false),
    (b"][?^?*]", b"_ZAZ", false),
    (b"]\\A*\\", b"Z_z", false),
    (b"_[*-", b"BA9", false),
    (b"b[\\]az", b"BZ", true),
    (b"z[\\Z", b"ZZ", true),
];

/// Answers of Valkey 9.1 to KEYS, and, where case is ignored, to FUNCTION LIST LIBRARYNAME.
#[test]
fn matches_as_a_real_server_does() {
    for (pattern, text, expected) in EXACT {
        let found = Glob::new(pattern).matches(text);
        assert_eq!(found, *expected, "{} {}", pattern.escape_ascii(), text.escape_ascii());
    }
    for (pattern, text, expected) in IGNORING_CASE {
        let found = Glob::ignoring_case(pattern).matches(text);
        assert_eq!(found, *expected, "{} {}", pattern.escape_ascii(), text.escape_ascii());
    }
}

#[test]
fn an_empty_text_is_matched_by_nothing_but_an_empty_pattern() {
    assert!(Glob::new(b"").matches(b""));
    assert!(!Glob::new(b"").matches(b"a"));
    assert!(!Glob::new(b"*").matches(b""));
    assert!(!Glob::new(b"**").matches(b""));
}

#[test]
fn a_thousand_stars_match_and_one_more_does_not() {
    let text = vec![b'a'; 1100];
    let stars = |count| b"*a".repeat(count);
    assert!(Glob::new(&stars(1000)).matches(&text));
    assert!(Glob::new(&[stars(1000), b"*".to_vec()].concat()).matches(&text));
    assert!(!Glob::new(&stars(1001)).matches(&text));
}

/// The recursive matcher of old took longer than the age of the universe for this.
#[test]
fn many_stars_are_no_attack() {
    let text = vec![b'a'; 20_000];
    let pattern = [b"a*".repeat(900), b"b".to_vec()].concat();
    assert!(!Glob::new(&pattern).matches(&text));
    assert!(!Glob::ignoring_case(&pattern).matches(&text));
}

#[test]
fn what_a_pattern_is() {
    assert!(Glob::new(b"*").is_star() && !Glob::new(b"**").is_star());
    assert!(Glob::new(b"user:1]-^").is_literal());
    for pattern in ["a*", "a?", "[a", "a\\"] {
        assert!(!Glob::new(pattern.as_bytes()).is_literal(), "{pattern}");
    }
}
