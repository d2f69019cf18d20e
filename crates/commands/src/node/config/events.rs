//! The letters of `notify-keyspace-events`.

/// Which events are published, and how. The bits are those of the engine's event classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct EventFlags(pub u32);

const KEYSPACE: u32 = 1;
const KEYEVENT: u32 = 1 << 1;
const KEY_MISS: u32 = 1 << 11;
const NEW: u32 = 1 << 14;

/// The classes that `A` stands for, in the order in which they are printed.
const IN_ALL: [(u8, u32); 10] = [
    (b'g', 1 << 2),
    (b'$', 1 << 3),
    (b'l', 1 << 4),
    (b's', 1 << 5),
    (b'h', 1 << 6),
    (b'z', 1 << 7),
    (b'x', 1 << 8),
    (b'e', 1 << 9),
    (b't', 1 << 10),
    (b'd', 1 << 13),
];
/// `o` (overwritten) and `c` (type changed) are of Redis 8.2.
const ASKED_FOR: [(u8, u32); 6] = [
    (b'K', KEYSPACE),
    (b'E', KEYEVENT),
    (b'm', KEY_MISS),
    (b'n', NEW),
    (b'o', 1 << 15),
    (b'c', 1 << 16),
];

const ALL: u32 = {
    let (mut bits, mut index) = (0, 0);
    while index < IN_ALL.len() {
        bits |= IN_ALL[index].1;
        index += 1;
    }
    bits
};

impl EventFlags {
    /// Reads the letters, in any order; `None` if one of them is unknown.
    pub fn parse(letters: &[u8]) -> Option<EventFlags> {
        let mut bits = 0;
        for letter in letters {
            bits |= match letter {
                b'A' => ALL,
                _ => IN_ALL.iter().chain(&ASKED_FOR).find(|(known, _)| known == letter)?.1,
            };
        }
        Some(EventFlags(bits))
    }

    /// As CONFIG GET prints them.
    /// COMPAT: beside `A`, the `n` is not shown (test `event_letters_print_as_valkey_prints_them`).
    pub fn shown(self) -> String {
        let hidden = if self.0 & ALL == ALL { NEW } else { 0 };
        EventFlags(self.0 & !hidden).complete()
    }

    /// All letters, so that reading them gives the same flags.
    pub fn complete(self) -> String {
        let mut text = String::new();
        let mut push = |(letter, bit): (u8, u32)| {
            if self.0 & bit != 0 {
                text.push(char::from(letter));
            }
        };
        let [keyspace, keyevent, miss, rare @ ..] = ASKED_FOR;
        if self.0 & ALL == ALL {
            push((b'A', ALL));
            [keyspace, keyevent, miss].into_iter().chain(rare).for_each(push);
        } else {
            IN_ALL.into_iter().for_each(&mut push);
            rare.into_iter().chain([keyspace, keyevent, miss]).for_each(push);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proved on Valkey 9.1.2, but for `o` and `c`, which it does not have.
    #[test]
    fn event_letters_print_as_valkey_prints_them() {
        for (letters, shown) in [
            ("", ""),
            ("KEA", "AKE"),
            ("Kg$lshzxetd", "AK"),
            ("nmKdtexzhsl$gE", "AKEm"),
            ("AnmEK", "AKEm"),
            ("EKzl", "lzKE"),
            ("nK", "nK"),
            ("mxE", "xEm"),
            ("coK", "ocK"),
        ] {
            let flags = EventFlags::parse(letters.as_bytes()).expect(letters);
            assert_eq!(flags.shown(), shown, "{letters}");
            assert_eq!(EventFlags::parse(flags.complete().as_bytes()), Some(flags));
        }
        assert_eq!(EventFlags::parse(b"Kq"), None);
        assert_eq!(EventFlags::parse(b" "), None);
    }
}
