//! Strict reading of JSON bodies.
//!
//! Two passes: a scanner of our own that refuses what serde would let through (deep nesting,
//! repeated keys), then serde into types that borrow from the body, by way of `objects.rs`. The
//! scanner does not judge syntax: on anything odd it stops and leaves the verdict to serde.

mod objects;

use crate::limits::JSON_DEPTH_MAX;
use crate::refusal::{self, Refusal};
use mainspring_kernel::limits::BATCH_MAX;
use objects::Objects;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};
use std::fmt;
use std::hash::{BuildHasher, Hasher};
use std::marker::PhantomData;

/// Checks what serde does not: UTF-8, depth, repeated keys.
pub(crate) fn check(body: &[u8]) -> Result<&str, Refusal> {
    let text =
        std::str::from_utf8(body).map_err(|error| refusal::json_not_utf8(error.valid_up_to()))?;
    Scanner::new(text).run()?;
    Ok(text)
}

/// Reads a checked body; a wrong one is told by line and column or by the path of the field.
pub(crate) fn read<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, Refusal> {
    parse(text).map_err(|error| explain::<T>(text, &error))
}

/// Reads `text` as a `T` and nothing behind it. Arrays do not pass for objects.
pub(crate) fn parse<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = T::deserialize(Objects(&mut deserializer))?;
    deserializer.end()?;
    Ok(value)
}

/// Why `text` is not a `T`; reads it again to learn the path.
pub(crate) fn explain<'a, T: Deserialize<'a>>(text: &'a str, error: &serde_json::Error) -> Refusal {
    if !error.is_data() {
        return refusal::json_invalid(format!("the body is not JSON: {error}"));
    }
    let mut deserializer = serde_json::Deserializer::from_str(text);
    match serde_path_to_error::deserialize::<_, T>(Objects(&mut deserializer)) {
        Ok(_) => refusal::misshapen(error.to_string(), ""),
        Err(error) => {
            let path = error.path().to_string();
            refusal::misshapen(error.into_inner().to_string(), path)
        }
    }
}

/// A list that stops keeping items beyond the largest batch, so that no body can fill the memory.
#[derive(Debug)]
pub(crate) struct Bounded<T> {
    pub(crate) items: Vec<T>,
    pub(crate) is_over: bool,
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Bounded<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Reader<T> {
            type Value = Bounded<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Bounded<T>, A::Error> {
                let mut items = Vec::new();
                while items.len() < BATCH_MAX {
                    match seq.next_element()? {
                        Some(item) => items.push(item),
                        None => return Ok(Bounded { items, is_over: false }),
                    }
                }
                let mut is_over = false;
                while seq.next_element::<IgnoredAny>()?.is_some() {
                    is_over = true;
                }
                Ok(Bounded { items, is_over })
            }
        }
        deserializer.deserialize_seq(Reader(PhantomData))
    }
}

/// Keys of an object up to which each is compared with those before it; beyond, they are sorted.
const FEW: usize = 16;

/// A key of an object that is still open.
#[derive(Clone, Copy)]
struct Key {
    hash: u64,
    start: u32,
    end: u32,
}

struct Scanner<'a> {
    bytes: &'a [u8],
    hasher: foldhash::fast::FixedState,
    /// For every open bracket: where the keys of this object start, or `None` for an array.
    open: Vec<Option<usize>>,
    /// Keys of all open objects.
    keys: Vec<Key>,
}

impl<'a> Scanner<'a> {
    fn new(text: &'a str) -> Self {
        Scanner {
            bytes: text.as_bytes(),
            hasher: foldhash::fast::FixedState::default(),
            open: Vec::with_capacity(8),
            keys: Vec::with_capacity(32),
        }
    }

    fn run(mut self) -> Result<(), Refusal> {
        let mut at = 0;
        let mut is_key_next = false;
        while let Some(&byte) = self.bytes.get(at) {
            at += 1;
            match byte {
                b'"' => {
                    let Some((end, has_escape)) = self.string_end(at) else { return Ok(()) };
                    if is_key_next {
                        self.key(at, end, has_escape)?;
                        is_key_next = false;
                    }
                    at = end + 1;
                }
                b'{' => {
                    self.enter(Some(self.keys.len()))?;
                    is_key_next = true;
                }
                b'[' => {
                    self.enter(None)?;
                    is_key_next = false;
                }
                b'}' | b']' => match self.open.pop() {
                    Some(Some(start)) => self.leave(start)?,
                    Some(None) => {}
                    None => return Ok(()),
                },
                b',' => is_key_next = matches!(self.open.last(), Some(Some(_))),
                _ => {}
            }
        }
        Ok(())
    }

    fn enter(&mut self, keys: Option<usize>) -> Result<(), Refusal> {
        if self.open.len() >= JSON_DEPTH_MAX {
            return Err(refusal::json_too_deep());
        }
        self.open.push(keys);
        Ok(())
    }

    /// The place of the closing quote, and whether there is an escape before it.
    #[inline]
    fn string_end(&self, start: usize) -> Option<(usize, bool)> {
        let mut has_escape = false;
        let mut at = start;
        loop {
            at += plain(self.bytes.get(at..)?);
            match self.bytes.get(at)? {
                b'"' => return Some((at, has_escape)),
                _ => {
                    has_escape = true;
                    at += 2;
                }
            }
        }
    }

    fn key(&mut self, start: usize, end: usize, has_escape: bool) -> Result<(), Refusal> {
        let mut hasher = self.hasher.build_hasher();
        if has_escape {
            hasher.write(unescaped(self.bytes, start, end).as_bytes());
        } else {
            hasher.write(&self.bytes[start..end]);
        }
        let key = Key { hash: hasher.finish(), start: start as u32, end: end as u32 };
        let first = self.open.last().copied().flatten().unwrap_or(self.keys.len());
        let before = &self.keys[first..];
        if before.len() < FEW && before.iter().any(|other| self.is_same(*other, key)) {
            return Err(refusal::json_duplicate_key(&unescaped(self.bytes, start, end)));
        }
        self.keys.push(key);
        Ok(())
    }

    /// Closes an object: one with many keys is only now looked through.
    fn leave(&mut self, start: usize) -> Result<(), Refusal> {
        if self.keys.len() - start > FEW {
            self.keys[start..].sort_unstable_by_key(|key| key.hash);
            let twice = self.keys[start..].windows(2).find(|pair| self.is_same(pair[0], pair[1]));
            if let Some(pair) = twice {
                let (start, end) = (pair[0].start as usize, pair[0].end as usize);
                return Err(refusal::json_duplicate_key(&unescaped(self.bytes, start, end)));
            }
        }
        self.keys.truncate(start);
        Ok(())
    }

    fn is_same(&self, one: Key, other: Key) -> bool {
        let text = |key: Key| unescaped(self.bytes, key.start as usize, key.end as usize);
        one.hash == other.hash && text(one) == text(other)
    }
}

/// How many bytes come before the next quote or backslash; eight at a time.
#[inline]
fn plain(bytes: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let (chunks, rest) = bytes.as_chunks::<8>();
    for (index, chunk) in chunks.iter().enumerate() {
        let word = u64::from_le_bytes(*chunk);
        let quote = word ^ (ONES * b'"' as u64);
        let slash = word ^ (ONES * b'\\' as u64);
        let found = (quote.wrapping_sub(ONES) & !quote | slash.wrapping_sub(ONES) & !slash) & HIGH;
        if found != 0 {
            return index * 8 + found.trailing_zeros() as usize / 8;
        }
    }
    let tail = rest.iter().position(|byte| matches!(byte, b'"' | b'\\'));
    chunks.len() * 8 + tail.unwrap_or(rest.len())
}

/// A key as it is meant; one that cannot be read is left to serde.
fn unescaped(bytes: &[u8], start: usize, end: usize) -> String {
    let raw = String::from_utf8_lossy(&bytes[start..end]);
    if !raw.contains('\\') {
        return raw.into_owned();
    }
    serde_json::from_str(&format!("\"{raw}\"")).unwrap_or_else(|_| raw.into_owned())
}

#[cfg(test)]
mod tests;
