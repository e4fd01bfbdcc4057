//! Where a list goes on, as a text that means nothing to whoever holds it.
//!
//! A cursor holds the place behind the last entry of a page, which its holder has just been shown,
//! and a digest of that place, the list, the caller's scope and the filters. So it tells nothing of
//! anybody else's jobs, and one that was changed, or is of another caller or of other filters, is
//! noticed. It is no permission: what it leads to is filtered like any other page.

use mainspring_kernel::fingerprint::{Digest, digest};
use mainspring_kernel::limits::NAME_BYTES_MAX;

const TAG: usize = 12;

/// Longest cursor of any list: that of the workers holds two names, in hexadecimal digits.
pub(crate) const BYTES_MAX: usize = 2 * (2 * NAME_BYTES_MAX + 1);

/// A cursor for the entry with this id.
pub(crate) fn write(list: Digest, id: u128) -> String {
    let tag = tag(list, id);
    let place = id ^ mask(&tag);
    let mut text = String::with_capacity(2 * (TAG + 16));
    for byte in tag.iter().chain(&place.to_be_bytes()) {
        text.push(char::from(b"0123456789abcdef"[usize::from(byte >> 4)]));
        text.push(char::from(b"0123456789abcdef"[usize::from(byte & 15)]));
    }
    text
}

/// The id a cursor was made for, if it was made for this list.
pub(crate) fn read(list: Digest, text: &str) -> Option<u128> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    let bytes = pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?));
    let bytes: Vec<u8> = bytes.collect::<Option<_>>()?;
    let (head, place) = bytes.split_first_chunk::<TAG>()?;
    let id = u128::from_be_bytes(place.try_into().ok()?) ^ mask(head);
    (tag(list, id) == *head).then_some(id)
}

fn tag(list: Digest, id: u128) -> [u8; TAG] {
    let whole = digest(&[b"cursor", &list.0, &id.to_be_bytes()]);
    let mut tag = [0; TAG];
    tag.copy_from_slice(&whole.0[..TAG]);
    tag
}

fn mask(tag: &[u8; TAG]) -> u128 {
    u128::from_be_bytes(digest(&[b"cursor place", tag]).0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_leads_back_to_its_place_and_nothing_else_does() {
        let (list, other) = (digest(&[b"one"]), digest(&[b"two"]));
        for id in [0, 1, u128::MAX, 0x0192_3b5c_7d00_7abc_8def_0123_4567_89ab] {
            let text = write(list, id);
            assert_eq!(read(list, &text), Some(id));
            assert_eq!(read(other, &text), None, "it is of another list");
            for at in 0..text.len() {
                let mut changed = text.clone().into_bytes();
                changed[at] = if changed[at] == b'0' { b'1' } else { b'0' };
                let changed = String::from_utf8(changed).unwrap();
                assert_eq!(read(list, &changed), None, "{changed}");
                assert_eq!(read(list, &text[..at]), None, "{at}");
            }
            assert_eq!(read(list, &text.to_uppercase()).filter(|_| id > 1), None);
        }
        assert_eq!(read(list, "é"), None);
    }

    #[test]
    fn neighbours_have_nothing_in_common() {
        let list = digest(&[b"one"]);
        let (one, two) = (write(list, 1 << 100), write(list, (1 << 100) + 1));
        let same = one.bytes().zip(two.bytes()).filter(|(a, b)| a == b).count();
        assert!(same < 20, "{one} {two}");
    }
}
