//! What hosts tell each other of their clocks: questions and answers of one size, authenticated by a key that they share.

use crate::{layout::Address, synchronised::Clock};
use hmac::{Hmac, Mac as _};
use hostctl::failure::{Failure, Outcome};
use sha2::Sha256;
use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::Path,
};

/// Tells an answer to one question from those to all others.
pub type Nonce = [u8; 16];

/// A message: 96 octets, numbers in network order.
///
/// ```text
/// 0   "onramp 1"    8   1 if it is an answer, seven of zero    16  nonce of the question    32  address that was asked
/// 48  ahead         56  error                                  64  HMAC-SHA-256 of what is before (RFC 2104)
/// ```
#[derive(Debug, PartialEq, Eq)]
pub struct Message {
    pub nonce: Nonce,
    pub asked: Address,
    /// `None` for a question.
    pub clock: Option<Clock>,
}

const NAME: &[u8; 8] = b"onramp 1";
const TEXT: usize = 64;
pub const LENGTH: usize = 96;

impl Message {
    pub fn write(&self, key: &Key) -> [u8; LENGTH] {
        let clock = self.clock.unwrap_or(Clock { ahead: 0, error: 0 });
        let mut octets = [0; LENGTH];
        octets[..8].copy_from_slice(NAME);
        octets[8] = self.clock.is_some().into();
        octets[16..32].copy_from_slice(&self.nonce);
        octets[32..48].copy_from_slice(&self.asked.0);
        octets[48..56].copy_from_slice(&clock.ahead.to_be_bytes());
        octets[56..TEXT].copy_from_slice(&clock.error.to_be_bytes());
        let code = key.0.clone().chain_update(&octets[..TEXT]).finalize().into_bytes();
        octets[TEXT..].copy_from_slice(&code);
        octets
    }

    /// `None` if it is none, or of somebody who does not know the key.
    pub fn read(octets: &[u8], key: &Key) -> Option<Self> {
        let octets: &[u8; LENGTH] = octets.try_into().ok()?;
        key.0.clone().chain_update(&octets[..TEXT]).verify_slice(&octets[TEXT..]).ok()?;
        let eight = |at: usize| octets[at..at + 8].try_into().ok();
        let clock = Clock { ahead: i64::from_be_bytes(eight(48)?), error: u64::from_be_bytes(eight(56)?) };
        let clock = match (octets.starts_with(NAME), octets[8]) {
            (true, 0) => None,
            (true, 1) => Some(clock),
            _ => return None,
        };
        let (nonce, asked) = (octets[16..32].try_into().ok()?, Address(octets[32..48].try_into().ok()?));
        Some(Self { nonce, asked, clock })
    }
}

/// What both ends share.
#[derive(Clone)]
pub struct Key(Hmac<Sha256>);

impl Key {
    /// Reads a file that nobody else can read.
    ///
    /// # Errors
    /// There is none, others may read it, or it is shorter than 16 octets.
    pub fn read(path: &Path) -> Outcome<Self> {
        let name = path.display();
        let wrong = |what: &dyn std::fmt::Display| Failure::input(format!("--key {name}: {what}"));
        let found = fs::metadata(path).map_err(|error| wrong(&error))?;
        let mode = found.permissions().mode();
        if found.uid() != 0 && found.uid() != rustix::process::geteuid().as_raw() {
            return Err(wrong(&format!("found a file of user {}, allowed is root's", found.uid())));
        }
        if mode & 0o077 != 0 {
            return Err(wrong(&format!("found mode {:o}, allowed is 600: others must not read it", mode & 0o777)));
        }
        let octets = fs::read(path).map_err(|error| wrong(&error))?;
        let octets = octets.trim_ascii();
        if octets.len() < 16 {
            return Err(wrong(&format!("found {} octets, allowed are 16 and more", octets.len())));
        }
        Self::of(octets).ok_or_else(|| wrong(&"not a key"))
    }

    /// Of its octets.
    pub fn of(octets: &[u8]) -> Option<Self> {
        Hmac::new_from_slice(octets).ok().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_knows_the_key_is_believed() {
        let (key, other) = (Key::of(&[7; 16]).expect("a key"), Key::of(&[8; 16]).expect("a key"));
        let clock = Clock { ahead: -123_456_789_012, error: 900 };
        for clock in [None, Some(clock)] {
            let message = Message { nonce: [9; 16], asked: Address([3; 16]), clock };
            let octets = message.write(&key);
            assert_eq!(Message::read(&octets, &other), None);
            assert!((0..LENGTH).all(|length| Message::read(&octets[..length], &key).is_none()));
            for place in 0..LENGTH {
                let mut forged = octets;
                forged[place] ^= 1;
                assert_eq!(Message::read(&forged, &key), None, "{place}");
            }
            assert_eq!(Message::read(&octets, &key), Some(message));
        }
    }

    #[test]
    fn a_key_that_others_may_read_is_none() {
        let folder = std::env::temp_dir().join(format!("onrampctl-key-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("key");
        let write = |text: &str, mode: u32| {
            fs::write(&path, text).expect("a file");
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("a mode");
            Key::read(&path).err().map(|failure| failure.to_string()).unwrap_or_default()
        };
        assert!(write("0123456789abcdef", 0o640).contains("found mode 640"));
        assert!(write("0123456789abcde\n", 0o600).contains("found 15 octets"));
        assert_eq!(write("0123456789abcdef\n", 0o600), "");
        fs::remove_dir_all(&folder).expect("removed");
        assert!(Key::read(&path).is_err());
    }
}
