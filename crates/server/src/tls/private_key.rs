//! The key of a certificate, out of its PEM file, with its password if it needs one. Nothing here
//! says a word of the key or the password in an error.

use pkcs8::pkcs5::EncryptionScheme;
use pkcs8::{EncryptedPrivateKeyInfo, SecretDocument};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

const ENCRYPTED_BEGIN: &str = "-----BEGIN ENCRYPTED PRIVATE KEY-----";
const ENCRYPTED_END: &str = "-----END ENCRYPTED PRIVATE KEY-----";
/// In the head of a key as OpenSSL encrypted it before version 1.0.
const OLD_MARK: &str = "Proc-Type: 4,ENCRYPTED";
const CONVERT: &str = "convert it with 'openssl pkcs8 -topk8'";

/// The first key of a file; an error says what is wrong with it, and not in which file.
pub fn parse(text: &[u8], password: &[u8]) -> Result<PrivateKeyDer<'static>, String> {
    let shown = String::from_utf8_lossy(text);
    if let Some(block) = encrypted_block(&shown) {
        return decrypt(block, password);
    }
    // DIFFERS: its key comes from one round of MD5, which protects nothing.
    if shown.contains(OLD_MARK) {
        return Err(format!("this old way to encrypt a key is not supported: {CONVERT}"));
    }
    PrivateKeyDer::from_pem_slice(text).map_err(|error| match error {
        pem::Error::NoItemsFound => "no key in PEM format".to_owned(),
        error => error.to_string(),
    })
}

/// From its first line to its last: other things may stand around it.
fn encrypted_block(text: &str) -> Option<&str> {
    let begin = text.find(ENCRYPTED_BEGIN)?;
    let block = &text[begin..];
    let end = block.find(ENCRYPTED_END).map_or(block.len(), |at| at + ENCRYPTED_END.len());
    Some(&block[..end])
}

fn decrypt(block: &str, password: &[u8]) -> Result<PrivateKeyDer<'static>, String> {
    if password.is_empty() {
        return Err("the key needs a password, and there is none".to_owned());
    }
    let (_label, document) = SecretDocument::from_pem(block).map_err(|error| error.to_string())?;
    let encrypted = EncryptedPrivateKeyInfo::try_from(document.as_bytes())
        .map_err(|_| format!("this way to encrypt a key is not supported: {CONVERT}"))?;
    if matches!(encrypted.encryption_algorithm, EncryptionScheme::Pbes1(_)) {
        return Err(format!("this old way to encrypt a key is not supported: {CONVERT}"));
    }
    // One wrong password in 256 seems to fit, and what it gives is no key then.
    let opened = encrypted.decrypt(password).map_err(|_| "the password is wrong".to_owned())?;
    Ok(PrivatePkcs8KeyDer::from(opened.as_bytes().to_vec()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_key_is_told_apart() {
        let of = |text: &str| parse(text.as_bytes(), b"secret").unwrap_err();
        assert_eq!(of("nothing"), "no key in PEM format");
        let old = format!("-----BEGIN RSA PRIVATE KEY-----\n{OLD_MARK}\n\nAAAA\n");
        assert!(of(&old).contains("openssl pkcs8 -topk8"));
        // Cut short, not base64, and not what it says.
        for inside in ["", "\nAAA", "\n????\n", "\nAAAA\n"] {
            for end in ["", ENCRYPTED_END] {
                assert!(!of(&format!("{ENCRYPTED_BEGIN}{inside}{end}")).contains("AAA"));
            }
        }
        assert!(parse(ENCRYPTED_BEGIN.as_bytes(), b"").unwrap_err().contains("there is none"));
    }
}
