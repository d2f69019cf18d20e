//! `tls-ciphers` and `tls-ciphersuites`: names as OpenSSL has them, among the ciphers that there
//! are.

use rustls::SupportedCipherSuite;

/// Words of a cipher list that mean all of ours: each of them has forward secrecy and is strong.
const ALL: &[&str] = &["DEFAULT", "ALL", "HIGH", "SECURE", "ECDHE", "EECDH", "kECDHE", "kEECDH"];

/// The ciphers up to TLS 1.2 that a list asks for, apart by colons or spaces. As with OpenSSL,
/// what is unknown is passed over, `!` and `-` take away, and a list that leaves none is refused.
/// DIFFERS: the list is matched by whole names, not by their parts.
pub fn up_to_tls12(
    list: &str,
    known: &[SupportedCipherSuite],
) -> Result<Vec<SupportedCipherSuite>, String> {
    let known = || known.iter().filter(|suite| suite.tls13().is_none());
    if list.is_empty() {
        return Ok(known().copied().collect());
    }
    let is_named = |suite: &SupportedCipherSuite, name: &str| {
        ALL.contains(&name) || openssl_name(*suite).eq_ignore_ascii_case(name)
    };
    let (mut chosen, mut banned) = (Vec::<SupportedCipherSuite>::new(), Vec::new());
    for word in list.split([':', ',', ' ']).filter(|word| !word.is_empty()) {
        match word.split_at_checked(1) {
            Some(("!", name)) => banned.push(name),
            Some(("-", name)) => chosen.retain(|suite| !is_named(suite, name)),
            // An order of preference that we have anyway.
            Some(("+" | "@", _)) => {}
            _ => {
                for suite in known().filter(|suite| is_named(suite, word)) {
                    if !chosen.contains(suite) {
                        chosen.push(*suite);
                    }
                }
            }
        }
    }
    chosen.retain(|suite| !banned.iter().any(|name| is_named(suite, name)));
    if chosen.is_empty() {
        return Err(format!("tls-ciphers: '{list}' names none of {}", names(known())));
    }
    Ok(chosen)
}

/// The ciphers of TLS 1.3 that a list names, apart by colons.
pub fn of_tls13(
    list: &str,
    known: &[SupportedCipherSuite],
) -> Result<Vec<SupportedCipherSuite>, String> {
    let known = || known.iter().filter(|suite| suite.tls13().is_some());
    if list.is_empty() {
        return Ok(known().copied().collect());
    }
    let mut chosen = Vec::new();
    for name in list.split(':').filter(|name| !name.is_empty()) {
        let found = known().find(|suite| openssl_name(**suite).eq_ignore_ascii_case(name));
        let Some(suite) = found else {
            return Err(format!("tls-ciphersuites: '{name}' is none of {}", names(known())));
        };
        chosen.push(*suite);
    }
    if chosen.is_empty() {
        return Err(format!("tls-ciphersuites: '{list}' names none of {}", names(known())));
    }
    Ok(chosen)
}

fn names<'a>(suites: impl Iterator<Item = &'a SupportedCipherSuite>) -> String {
    suites.map(|suite| openssl_name(*suite)).collect::<Vec<_>>().join(":")
}

/// `TLS_AES_128_GCM_SHA256` of TLS 1.3, `ECDHE-RSA-AES128-GCM-SHA256` of what was before.
fn openssl_name(suite: SupportedCipherSuite) -> String {
    let name = suite.suite().as_str().unwrap_or_default();
    match name.strip_prefix("TLS13_") {
        Some(rest) => format!("TLS_{rest}"),
        None => {
            let name = name.trim_start_matches("TLS_").replace("_WITH_", "_");
            let name = name.replace("AES_", "AES").replace("POLY1305_SHA256", "POLY1305");
            name.replace('_', "-")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::crypto::ring::ALL_CIPHER_SUITES;

    fn old(list: &str) -> Result<Vec<String>, String> {
        let chosen = up_to_tls12(list, ALL_CIPHER_SUITES)?;
        Ok(chosen.into_iter().map(openssl_name).collect())
    }

    fn new(list: &str) -> Result<Vec<String>, String> {
        let chosen = of_tls13(list, ALL_CIPHER_SUITES)?;
        Ok(chosen.into_iter().map(openssl_name).collect())
    }

    #[test]
    fn ciphers_have_the_names_that_openssl_gives_them() {
        assert_eq!(
            new("").unwrap(),
            ["TLS_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256"]
        );
        assert_eq!(
            old("").unwrap(),
            [
                "ECDHE-ECDSA-AES256-GCM-SHA384",
                "ECDHE-ECDSA-AES128-GCM-SHA256",
                "ECDHE-ECDSA-CHACHA20-POLY1305",
                "ECDHE-RSA-AES256-GCM-SHA384",
                "ECDHE-RSA-AES128-GCM-SHA256",
                "ECDHE-RSA-CHACHA20-POLY1305",
            ]
        );
    }

    #[test]
    fn a_list_keeps_its_order_and_passes_over_what_is_unknown() {
        let list = "AES128-SHA:ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384";
        assert_eq!(
            old(list).unwrap(),
            ["ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384"]
        );
        assert_eq!(old("DEFAULT:!MEDIUM").unwrap().len(), 6);
        assert_eq!(old("HIGH:!ECDHE-RSA-CHACHA20-POLY1305:!aNULL").unwrap().len(), 5);
        assert!(old("AES128-SHA").unwrap_err().contains("names none of ECDHE"));
        assert_eq!(new("TLS_AES_128_GCM_SHA256").unwrap(), ["TLS_AES_128_GCM_SHA256"]);
        assert!(new("TLS_AES_128_CCM_SHA256").unwrap_err().contains("is none of"));
        assert!(new(":").is_err());
    }
}
