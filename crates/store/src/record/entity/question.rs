//! Questions. What is new goes to the end of its array.

use super::super::BadRecord;
use super::super::wire::{Pen, Reader, length};
use mainspring_kernel::entity::question::{Asked, Question, Standing};
use mainspring_kernel::{JobId, Timestamp, UserId};

type Read<T> = Result<T, BadRecord>;

pub(super) fn write_question(pen: &mut Pen<'_>, question: &Question, base: Timestamp) {
    let Question { job, asked, count, standing, secret, kept_until } = question;
    let Asked { text, options, default, deadline } = asked;
    pen.array(length(7, [secret.is_some(), kept_until.is_some()]));
    pen.bits(job.0); // 0
    pen.text(text); // 1
    pen.array(options.len() as u64); // 2
    options.iter().for_each(|option| pen.text(option));
    pen.optional(default.as_deref(), |pen, default| pen.text(default)); // 3
    pen.optional(*deadline, |pen, at| pen.instant(at, base)); // 4
    pen.number(*count); // 5
    write_standing(pen, standing, base); // 6
    if secret.is_some() || kept_until.is_some() {
        pen.optional(*secret, Pen::bits); // 7
    }
    if let Some(at) = kept_until {
        pen.instant(*at, base); // 8
    }
}

pub(super) fn read_question(reader: &mut Reader<'_, '_>, base: Timestamp) -> Read<Question> {
    let mut fields = reader.fields()?;
    let at = &mut fields;
    let job = JobId(reader.field(at, Reader::bits)?);
    let asked = Asked {
        text: reader.field(at, Reader::boxed)?,
        options: reader.field(at, |reader| reader.list(Reader::boxed))?,
        default: reader.optional(at, Reader::boxed)?,
        deadline: reader.optional(at, |reader| reader.instant(base))?,
    };
    let count = reader.field(at, Reader::small)?;
    let standing = reader.field(at, |reader| read_standing(reader, base))?;
    let secret = reader.optional(at, Reader::bits)?;
    let kept_until = reader.optional(at, |reader| reader.instant(base))?;
    reader.end(fields)?;
    Ok(Question { job, asked, count, standing, secret, kept_until })
}

fn write_standing(pen: &mut Pen<'_>, standing: &Standing, base: Timestamp) {
    let mut ended = |number: u8, at: Timestamp| {
        pen.array(2);
        pen.number(number); // 0
        pen.instant(at, base); // 1
    };
    match standing {
        Standing::Defaulted { at } => ended(2, *at),
        Standing::Expired { at } => ended(3, *at),
        Standing::Withdrawn { at } => ended(4, *at),
        Standing::Open => pen.number(0u8),
        Standing::Answered { answer, by, at } => {
            pen.array(4);
            pen.number(1u8); // 0
            pen.text(answer); // 1
            pen.text(by.as_str()); // 2
            pen.instant(*at, base); // 3
        }
    }
}

fn read_standing(reader: &mut Reader<'_, '_>, base: Timestamp) -> Read<Standing> {
    let (kind, mut fields) = reader.kind()?;
    let fields_at = &mut fields;
    let standing = match kind {
        0 => Standing::Open,
        1 => Standing::Answered {
            answer: reader.field(fields_at, Reader::boxed)?,
            by: UserId::stored(reader.field(fields_at, Reader::name)?),
            at: reader.field(fields_at, |reader| reader.instant(base))?,
        },
        2..=4 => {
            let at = reader.field(fields_at, |reader| reader.instant(base))?;
            match kind {
                2 => Standing::Defaulted { at },
                3 => Standing::Expired { at },
                _ => Standing::Withdrawn { at },
            }
        }
        _ => return Err(reader.bad("unknown standing of a question")),
    };
    reader.end(fields)?;
    Ok(standing)
}
