//! Tokens, as digests: a journal never holds a secret that opens anything.

use super::BadRecord;
use super::wire::{Pen, Reader, length};
use mainspring_kernel::{Roles, TenantId, Timestamp, Token, TokenId, UserId};

type Read<T> = Result<T, BadRecord>;

pub(super) fn write_token(pen: &mut Pen<'_>, token: &Token, base: Timestamp) {
    let Token {
        id,
        digest,
        tenant,
        user,
        roles,
        issued_at,
        issued_by,
        issued_with,
        expires_at,
        revoked_at,
    } = token;
    let len = length(7, [expires_at.is_some(), revoked_at.is_some(), issued_with.is_some()]);
    pen.array(len);
    pen.bits(id.0); // 0
    pen.bytes(digest); // 1
    pen.text(tenant.as_str()); // 2
    pen.text(user.as_str()); // 3
    pen.number(roles.0); // 4
    pen.instant(*issued_at, base); // 5
    pen.text(issued_by.as_str()); // 6
    if len > 7 {
        pen.optional(*expires_at, |pen, at| pen.instant(at, *issued_at)); // 7
    }
    if len > 8 {
        pen.optional(*revoked_at, |pen, at| pen.instant(at, *issued_at)); // 8
    }
    if let Some(parent) = issued_with {
        pen.bits(parent.0); // 9
    }
}

pub(super) fn read_token(reader: &mut Reader<'_, '_>, base: Timestamp) -> Read<Token> {
    let mut fields = reader.fields()?;
    let at = &mut fields;
    let id = TokenId(reader.field(at, Reader::bits)?);
    let digest = reader.field(at, Reader::exactly)?;
    let tenant = TenantId::stored(reader.field(at, Reader::name)?);
    let user = UserId::stored(reader.field(at, Reader::name)?);
    let roles = Roles(reader.field(at, Reader::small)?);
    let issued_at = reader.field(at, |reader| reader.instant(base))?;
    let token = Token {
        id,
        digest,
        tenant,
        user,
        roles,
        issued_at,
        issued_by: UserId::stored(reader.field(at, Reader::name)?),
        expires_at: reader.optional(at, |reader| reader.instant(issued_at))?,
        revoked_at: reader.optional(at, |reader| reader.instant(issued_at))?,
        issued_with: reader.optional(at, Reader::bits)?.map(TokenId),
    };
    reader.end(fields)?;
    Ok(token)
}
