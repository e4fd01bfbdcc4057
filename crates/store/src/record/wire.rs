//! The pen and the reader that every record is written and read with: thin covers over minicbor
//! that know arrays with numbered positions, instants as distances, and names.

use super::BadRecord;
use super::names::Names;
use mainspring_kernel::Timestamp;
use mainspring_kernel::fingerprint::Digest;
use minicbor::{Decoder, Encoder};
use std::sync::Arc;

const NULL: u8 = 0xf6;
const NO_FAIL: &str = "a vector takes any bytes";
/// Room made ahead for a list, at most; longer lists grow as their entries prove to be there.
const ROOM_MAX: u64 = 64;

/// Writes to the end of a vector.
pub(super) struct Pen<'a>(Encoder<&'a mut Vec<u8>>);

impl<'a> Pen<'a> {
    pub(super) fn new(out: &'a mut Vec<u8>) -> Self {
        Pen(Encoder::new(out))
    }

    #[inline]
    pub(super) fn array(&mut self, len: u64) {
        self.0.array(len).expect(NO_FAIL);
    }

    #[inline]
    pub(super) fn number(&mut self, number: impl Into<u64>) {
        self.0.u64(number.into()).expect(NO_FAIL);
    }

    #[inline]
    pub(super) fn flag(&mut self, flag: bool) {
        self.0.bool(flag).expect(NO_FAIL);
    }

    #[inline]
    pub(super) fn text(&mut self, text: &str) {
        self.0.str(text).expect(NO_FAIL);
    }

    #[inline]
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.0.bytes(bytes).expect(NO_FAIL);
    }

    #[inline]
    pub(super) fn bits(&mut self, bits: u128) {
        self.bytes(&bits.to_be_bytes());
    }

    /// An instant, as its distance from `base`. Wraps at the ends of the scale, and so does
    /// reading, so every instant survives every base.
    #[inline]
    pub(super) fn instant(&mut self, at: Timestamp, base: Timestamp) {
        self.0.i64(at.0.wrapping_sub(base.0)).expect(NO_FAIL);
    }

    #[inline]
    pub(super) fn null(&mut self) {
        self.0.null().expect(NO_FAIL);
    }

    /// What `write` writes, or null.
    #[inline]
    pub(super) fn optional<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Self, T)) {
        match value {
            Some(value) => write(self, value),
            None => self.null(),
        }
    }
}

/// How long an array is when the absent positions at its end are left out: `first` positions that
/// are always there, then one for each of `present`.
#[inline]
pub(super) fn length<const N: usize>(first: u64, present: [bool; N]) -> u64 {
    let tail = present.iter().rposition(|is_there| *is_there).map_or(0, |last| last + 1);
    first + tail as u64
}

/// The positions of an array that were not read yet.
#[derive(Debug)]
pub(super) struct Fields(u64);

/// Reads from the start of a slice.
pub(super) struct Reader<'b, 'n> {
    decoder: Decoder<'b>,
    names: &'n mut Names,
}

type Read<T> = Result<T, BadRecord>;

impl<'b, 'n> Reader<'b, 'n> {
    pub(super) fn new(bytes: &'b [u8], offset: usize, names: &'n mut Names) -> Self {
        let mut decoder = Decoder::new(bytes);
        decoder.set_position(offset);
        Reader { decoder, names }
    }

    pub(super) fn position(&self) -> usize {
        self.decoder.position()
    }

    #[cold]
    pub(super) fn bad(&self, reason: &'static str) -> BadRecord {
        BadRecord { offset: self.position(), reason }
    }

    /// The argument of the next head if it is of `major` type and fits in the head's own byte, as
    /// most do. Saves a fifth to a third of the time (`examples/codec_speed`).
    #[inline]
    fn short(&mut self, major: u8) -> Option<u8> {
        let position = self.decoder.position();
        let head = *self.decoder.input().get(position)?;
        let argument = head & 31;
        if head >> 5 != major || argument > 23 {
            return None;
        }
        self.decoder.set_position(position + 1);
        Some(argument)
    }

    /// Starts an array.
    #[inline]
    pub(super) fn fields(&mut self) -> Read<Fields> {
        if let Some(len) = self.short(4) {
            return Ok(Fields(u64::from(len)));
        }
        match self.decoder.array() {
            Ok(Some(len)) => Ok(Fields(len)),
            Ok(None) | Err(_) => Err(self.bad("expected an array of known length")),
        }
    }

    /// The number of a kind: the first position of an array, or alone if nothing follows.
    #[inline]
    pub(super) fn kind(&mut self) -> Read<(u64, Fields)> {
        let next = self.decoder.input().get(self.position()).copied();
        if next.is_some_and(|byte| byte >> 5 == 4) {
            let mut fields = self.fields()?;
            self.need(&mut fields)?;
            Ok((self.number()?, fields))
        } else {
            Ok((self.number()?, Fields(0)))
        }
    }

    /// Whether the next position holds something; steps over a null.
    #[inline]
    pub(super) fn has(&mut self, fields: &mut Fields) -> Read<bool> {
        if fields.0 == 0 {
            return Ok(false);
        }
        fields.0 -= 1;
        if self.decoder.input().get(self.position()) == Some(&NULL) {
            self.decoder.set_position(self.position() + 1);
            return Ok(false);
        }
        Ok(true)
    }

    /// The next position must hold something.
    #[inline]
    pub(super) fn need(&mut self, fields: &mut Fields) -> Read<()> {
        if self.has(fields)? { Ok(()) } else { Err(self.bad("a required field is missing")) }
    }

    /// Steps over the positions that a newer writer added.
    #[inline]
    pub(super) fn end(&mut self, fields: Fields) -> Read<()> {
        for _ in 0..fields.0 {
            self.decoder.skip().map_err(|_| self.bad("expected one more field"))?;
        }
        Ok(())
    }

    /// The value of the next position, read by `read`; `None` if there is none.
    #[inline]
    pub(super) fn optional<T>(
        &mut self,
        fields: &mut Fields,
        read: impl FnOnce(&mut Self) -> Read<T>,
    ) -> Read<Option<T>> {
        if self.has(fields)? { read(self).map(Some) } else { Ok(None) }
    }

    /// The value of the next position, which must be there.
    #[inline]
    pub(super) fn field<T>(
        &mut self,
        fields: &mut Fields,
        read: impl FnOnce(&mut Self) -> Read<T>,
    ) -> Read<T> {
        self.need(fields)?;
        read(self)
    }

    /// A list of what `read` reads.
    pub(super) fn list<T>(&mut self, mut read: impl FnMut(&mut Self) -> Read<T>) -> Read<Vec<T>> {
        let Fields(len) = self.fields()?;
        let left = self.decoder.input().len().saturating_sub(self.position()) as u64;
        if len > left {
            return Err(self.bad("a list is longer than the bytes that are left"));
        }
        let mut list = Vec::with_capacity(len.min(ROOM_MAX) as usize);
        for _ in 0..len {
            list.push(read(self)?);
        }
        Ok(list)
    }

    /// The next `len` bytes.
    #[inline]
    fn take(&mut self, len: usize) -> Read<&'b [u8]> {
        let start = self.decoder.position();
        let bytes = self.decoder.input().get(start..start + len);
        let bytes = bytes.ok_or_else(|| self.bad("the bytes end too early"))?;
        self.decoder.set_position(start + len);
        Ok(bytes)
    }

    #[inline]
    pub(super) fn number(&mut self) -> Read<u64> {
        if let Some(number) = self.short(0) {
            return Ok(u64::from(number));
        }
        self.decoder.u64().map_err(|_| self.bad("expected a number"))
    }

    /// A number that fits in a smaller type.
    #[inline]
    pub(super) fn small<T: TryFrom<u64>>(&mut self) -> Read<T> {
        let number = self.number()?;
        T::try_from(number).map_err(|_| self.bad("a number is too large"))
    }

    #[inline]
    pub(super) fn flag(&mut self) -> Read<bool> {
        self.decoder.bool().map_err(|_| self.bad("expected true or false"))
    }

    #[inline]
    pub(super) fn text(&mut self) -> Read<&'b str> {
        if let Some(len) = self.short(3) {
            let bytes = self.take(usize::from(len))?;
            return std::str::from_utf8(bytes).map_err(|_| self.bad("expected text"));
        }
        self.decoder.str().map_err(|_| self.bad("expected text"))
    }

    pub(super) fn boxed(&mut self) -> Read<Box<str>> {
        self.text().map(Into::into)
    }

    pub(super) fn payload(&mut self) -> Read<Arc<str>> {
        self.text().map(Into::into)
    }

    #[inline]
    pub(super) fn name(&mut self) -> Read<Arc<str>> {
        let text = self.text()?;
        match self.names.name(text) {
            Some(name) => Ok(name),
            None => Err(self.bad("a name breaks the rule for names")),
        }
    }

    pub(super) fn code(&mut self) -> Read<Arc<str>> {
        let text = self.text()?;
        Ok(self.names.code(text))
    }

    #[inline]
    pub(super) fn exactly<const N: usize>(&mut self) -> Read<[u8; N]> {
        let bytes = match self.short(2) {
            Some(len) => self.take(usize::from(len))?,
            None => self.decoder.bytes().map_err(|_| self.bad("expected bytes"))?,
        };
        bytes.try_into().map_err(|_| self.bad("bytes of another length"))
    }

    /// Bytes of any length.
    pub(super) fn blob(&mut self) -> Read<Vec<u8>> {
        self.decoder.bytes().map(<[u8]>::to_vec).map_err(|_| self.bad("expected bytes"))
    }

    #[inline]
    pub(super) fn bits(&mut self) -> Read<u128> {
        self.exactly().map(u128::from_be_bytes)
    }

    pub(super) fn digest(&mut self) -> Read<Digest> {
        self.exactly().map(Digest)
    }

    #[inline]
    pub(super) fn instant(&mut self, base: Timestamp) -> Read<Timestamp> {
        if let Some(distance) = self.short(0) {
            return Ok(Timestamp(base.0.wrapping_add(i64::from(distance))));
        }
        match self.decoder.i64() {
            Ok(distance) => Ok(Timestamp(base.0.wrapping_add(distance))),
            Err(_) => Err(self.bad("expected an instant")),
        }
    }
}
