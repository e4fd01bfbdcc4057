//! A frame: the events of one commit, one after another behind a small header. How a frame is
//! delimited and checked for damage is the journal's business.

use super::BadRecord;
use super::event::{decode_event, encode_event};
use super::names::Names;
use super::wire::{Pen, Reader};
use mainspring_kernel::{Event, Timestamp};

/// The first byte of every frame; files of records carry it in their own header.
pub const FORMAT_VERSION: u8 = 1;

/// Writes a frame. Holds no buffer, so that the caller may keep one for many frames.
#[derive(Debug, Clone, Copy)]
pub struct FrameWriter {
    base: Timestamp,
}

impl FrameWriter {
    /// Appends the header of a frame to `out`. `now` is the instant of the commit; if that is not
    /// known, [`super::instant_of`] the first event serves as well.
    pub fn begin(out: &mut Vec<u8>, now: Timestamp) -> Self {
        out.push(FORMAT_VERSION);
        let pen = &mut Pen::new(out);
        pen.array(1);
        pen.instant(now, Timestamp::EPOCH); // 0
        FrameWriter { base: now }
    }

    /// Appends an event to the frame that `out` ends with.
    pub fn push(&self, event: &Event, out: &mut Vec<u8>) {
        encode_event(event, self.base, out);
    }
}

/// The events of one frame, in order. Ends after the first bad one.
#[derive(Debug)]
pub struct Events<'a> {
    bytes: &'a [u8],
    offset: usize,
    names: &'a mut Names,
    header: Result<Timestamp, Option<BadRecord>>,
}

/// Reads the frame that fills `bytes`.
pub fn events_of<'a>(bytes: &'a [u8], names: &'a mut Names) -> Events<'a> {
    let (header, offset) = match read_header(bytes, names) {
        Ok((now, offset)) => (Ok(now), offset),
        Err(bad) => (Err(Some(bad)), bytes.len()),
    };
    Events { bytes, offset, names, header }
}

impl Events<'_> {
    /// The instant of the commit, if the header is whole.
    pub fn now(&self) -> Option<Timestamp> {
        self.header.as_ref().ok().copied()
    }
}

impl Iterator for Events<'_> {
    type Item = Result<Event, BadRecord>;

    fn next(&mut self) -> Option<Self::Item> {
        let base = match &mut self.header {
            Ok(base) => *base,
            Err(bad) => return bad.take().map(Err),
        };
        if self.offset >= self.bytes.len() {
            return None;
        }
        match decode_event(self.bytes, self.offset, base, self.names) {
            Ok((event, next)) => {
                self.offset = next;
                Some(Ok(event))
            }
            Err(bad) => {
                self.offset = self.bytes.len();
                Some(Err(bad))
            }
        }
    }
}

fn read_header(bytes: &[u8], names: &mut Names) -> Result<(Timestamp, usize), BadRecord> {
    if bytes.first() != Some(&FORMAT_VERSION) {
        return Err(BadRecord { offset: 0, reason: "unknown format version" });
    }
    let mut reader = Reader::new(bytes, 1, names);
    let mut fields = reader.fields()?;
    let now = reader.field(&mut fields, |reader| reader.instant(Timestamp::EPOCH))?;
    reader.end(fields)?;
    Ok((now, reader.position()))
}
