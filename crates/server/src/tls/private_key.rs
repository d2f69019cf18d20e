//! The key of a certificate, out of its PEM file, with its password if it needs one. Nothing here
//! says a word of the key or the password in an error.

use pkcs8::pkcs5::EncryptionScheme;
use pkcs8::pkcs5::pbes2::Kdf;
use pkcs8::{EncryptedPrivateKeyInfo, SecretDocument};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

const ENCRYPTED_BEGIN: &str = "-----BEGIN ENCRYPTED PRIVATE KEY-----";
/// In the head of a key as OpenSSL encrypted it before version 1.0.
const OLD_MARK: &str = "Proc-Type: 4,ENCRYPTED";
const CONVERT: &str = "convert it with 'openssl pkcs8 -topk8'";
const KEY_END: &str = "PRIVATE KEY-----";
/// How keys begin; whatever comes first is the key.
const KEY_BEGINS: [&str; 4] = [
    ENCRYPTED_BEGIN,
    "-----BEGIN PRIVATE KEY-----",
    "-----BEGIN RSA PRIVATE KEY-----",
    "-----BEGIN EC PRIVATE KEY-----",
];

/// What it may take to make a key of a password. The file says how much, nobody has vouched for it
/// before that is done, and the server does it while it runs. OpenSSL asks for 16 MiB and one lane
/// of scrypt, or for 2,048 rounds of PBKDF2.
const SCRYPT_BYTES_MAX: u64 = 32 << 20;
const SCRYPT_LANES_MAX: u16 = 16;
const PBKDF2_ROUNDS_MAX: u32 = 10_000_000;

/// The first key of a file; an error says what is wrong with it, and not in which file.
pub fn parse(text: &[u8], password: &[u8]) -> Result<PrivateKeyDer<'static>, String> {
    let shown = String::from_utf8_lossy(text);
    let block = first_key(&shown).unwrap_or_default();
    if block.starts_with(ENCRYPTED_BEGIN) {
        return decrypt(block, password);
    }
    // DIFFERS: its key comes from one round of MD5, which protects nothing.
    if block.contains(OLD_MARK) {
        return Err(format!("this old way to encrypt a key is not supported: {CONVERT}"));
    }
    PrivateKeyDer::from_pem_slice(text).map_err(|error| match error {
        pem::Error::NoItemsFound => "no key in PEM format".to_owned(),
        error => error.to_string(),
    })
}

/// From its first line to its last: other things may stand around it.
fn first_key(text: &str) -> Option<&str> {
    let begin = KEY_BEGINS.iter().filter_map(|begin| text.find(begin)).min()?;
    let block = &text[begin..];
    let body = block.find(KEY_END).map_or(block.len(), |at| at + KEY_END.len());
    let end = block[body..].find(KEY_END).map_or(block.len(), |at| body + at + KEY_END.len());
    Some(&block[..end])
}

/// Refuses what would take too much memory or time.
fn check_cost(scheme: &EncryptionScheme<'_>) -> Result<(), String> {
    let EncryptionScheme::Pbes2(scheme) = scheme else {
        return Err(format!("this old way to encrypt a key is not supported: {CONVERT}"));
    };
    let asked = match &scheme.kdf {
        Kdf::Scrypt(scrypt) => {
            let lanes = scrypt.parallelization;
            // Each lane has a block of its own, beside the table that they share.
            let blocks = scrypt.cost_parameter.max(u64::from(lanes));
            let bytes = blocks.saturating_mul(128 * u64::from(scrypt.block_size));
            let is_too_much = bytes > SCRYPT_BYTES_MAX || lanes > SCRYPT_LANES_MAX;
            is_too_much.then(|| format!("{bytes} bytes, {lanes} times"))
        }
        Kdf::Pbkdf2(pbkdf2) => {
            let rounds = pbkdf2.iteration_count;
            (rounds > PBKDF2_ROUNDS_MAX).then(|| format!("{rounds} rounds"))
        }
        _ => Some("something unknown".to_owned()),
    };
    match asked {
        None => Ok(()),
        Some(asked) => Err(format!("its encryption asks for too much ({asked}): {CONVERT}")),
    }
}

fn decrypt(block: &str, password: &[u8]) -> Result<PrivateKeyDer<'static>, String> {
    if password.is_empty() {
        return Err("the key needs a password, and there is none".to_owned());
    }
    let (_label, document) = SecretDocument::from_pem(block).map_err(|error| error.to_string())?;
    let encrypted = EncryptedPrivateKeyInfo::try_from(document.as_bytes())
        .map_err(|_| format!("this way to encrypt a key is not supported: {CONVERT}"))?;
    check_cost(&encrypted.encryption_algorithm)?;
    // One wrong password in 256 seems to fit, and what it gives is no key then.
    let opened = encrypted.decrypt(password).map_err(|_| "the password is wrong".to_owned())?;
    Ok(PrivatePkcs8KeyDer::from(opened.as_bytes().to_vec()).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pkcs8::LineEnding;
    use pkcs8::pkcs5::pbes2::EncryptionScheme as Cipher;
    use pkcs8::pkcs5::pbes2::{Parameters, Pbkdf2Params, Pbkdf2Prf, ScryptParams};

    const ENCRYPTED_END: &str = "-----END ENCRYPTED PRIVATE KEY-----";

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

    /// As a file has it, with nothing in it that a password opens.
    fn encrypted_with(kdf: impl Into<Kdf<'static>>) -> String {
        let encryption = Cipher::Aes256Cbc { iv: &[7; 16] };
        let scheme = Parameters { kdf: kdf.into(), encryption };
        let info = EncryptedPrivateKeyInfo {
            encryption_algorithm: scheme.into(),
            encrypted_data: &[7; 64],
        };
        let document = SecretDocument::try_from(&info).unwrap();
        document.to_pem("ENCRYPTED PRIVATE KEY", LineEnding::LF).unwrap().to_string()
    }

    fn scrypt(cost_parameter: u64, block_size: u16, parallelization: u16) -> String {
        let salt = &[7; 8];
        let key_length = None;
        let asked = ScryptParams { salt, cost_parameter, block_size, parallelization, key_length };
        encrypted_with(asked)
    }

    fn pbkdf2(iteration_count: u32) -> String {
        let prf = Pbkdf2Prf::HmacWithSha256;
        encrypted_with(Pbkdf2Params { salt: &[7; 8], iteration_count, key_length: None, prf })
    }

    /// A file could ask for 16 GiB, which ended the server, or for minutes of work, and got it
    /// before its password was looked at.
    #[test]
    fn a_key_whose_encryption_asks_for_too_much_is_refused() {
        let of = |text: &str| parse(text.as_bytes(), b"secret").unwrap_err();
        let dear = [
            scrypt(1 << 24, 8, 1),
            scrypt(1 << 60, 8, 1),
            scrypt(1 << 14, 127, 1),
            scrypt(2, u16::MAX, 16),
            scrypt(2, 8, 17),
            pbkdf2(PBKDF2_ROUNDS_MAX + 1),
            pbkdf2(u32::MAX),
        ];
        for text in dear {
            assert!(of(&text).contains("asks for too much ("), "{}", of(&text));
        }
        for text in [scrypt(1 << 14, 8, 1), scrypt(2, 8, 16), pbkdf2(2048)] {
            assert_eq!(of(&text), "the password is wrong");
        }
    }

    /// A file with two keys was read as the certificate's if the second was encrypted.
    #[test]
    fn the_first_key_of_a_file_is_the_one() {
        const PLAIN: &str = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
        let shut = pbkdf2(1);
        let opened = parse(format!("{PLAIN}{shut}").as_bytes(), b"").unwrap();
        assert_eq!(opened.secret_der(), [0, 0, 0]);
        let refused = parse(format!("text\n{shut}{PLAIN}").as_bytes(), b"secret");
        assert_eq!(refused.unwrap_err(), "the password is wrong");
        let old = format!("-----BEGIN RSA PRIVATE KEY-----\n{OLD_MARK}\n\nAAAA\n");
        assert!(parse(format!("{PLAIN}{old}").as_bytes(), b"").is_ok());
    }
}
