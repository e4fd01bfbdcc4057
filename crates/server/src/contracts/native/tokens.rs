//! Access tokens; for admins only, except that everybody may ask whose token theirs is.

use super::filters;
use crate::answer::Reply;
use crate::ask::Ask;
use crate::audit::{self, Note};
use crate::auth;
use crate::cursor;
use crate::json;
use crate::limits::TOKEN_OVERLAP_SECS_MAX;
use crate::refusal::{self, Refusal};
use hyper::StatusCode;
use mainspring_api as api;
use mainspring_kernel::fingerprint::digest;
use mainspring_kernel::{
    Command, Principal, Rejection, Role, Roles, TenantId, Timestamp, Token, TokenId, UserId,
};
use std::time::Duration;

pub(super) async fn issue(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let wish: api::token::IssueToken = json::read(json::check(&ask.body)?)?;
    let tenant =
        TenantId::new(&wish.tenant_id).map_err(|bad| refusal::invalid("tenant_id", bad))?;
    let user = UserId::new(&wish.user_id).map_err(|bad| refusal::invalid("user_id", bad))?;
    let mut roles = Vec::with_capacity(wish.roles.len());
    for role in &wish.roles {
        roles.push(Role::parse(role).ok_or_else(|| {
            refusal::invalid("roles", format_args!("has the unknown entry {role:?}"))
        })?);
    }
    if roles.is_empty() {
        return Err(refusal::invalid("roles", "must not be empty"));
    }
    let expires_at = wish.expires_at.map(|time| Timestamp(time.0));
    if expires_at.is_some_and(|end| end <= ask.engine().now()) {
        return Err(refusal::invalid("expires_at", "must be in the future"));
    }
    let (text, token) =
        auth::fresh(ask.engine(), (tenant, user), Roles::of(&roles), who.user.clone());
    let token = Token { expires_at, issued_with: Some(who.token), ..token };
    let mut answer = shown(&token);
    answer.token = Some(text);
    let note = Note {
        action: "token.issue",
        object_type: "token",
        object_id: answer.token_id.clone(),
        after: audit::json(&shown(&token)),
        ..Note::default()
    };
    audit::change(&ask, &who, Command::IssueToken(Box::new(token)), note).await?;
    Ok(Reply::status_data(StatusCode::CREATED, &answer))
}

/// A new token like the old one, which goes on working for a while or ends now; both or neither.
pub(super) async fn rotate(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let wish: api::token::RotateToken = match ask.body.is_empty() {
        true => api::token::RotateToken::default(),
        false => json::read(json::check(&ask.body)?)?,
    };
    let overlap = wish.overlap_seconds.unwrap_or(0);
    if overlap > TOKEN_OVERLAP_SECS_MAX {
        let most = format_args!("must be at most {TOKEN_OVERLAP_SECS_MAX}");
        return Err(refusal::invalid("overlap_seconds", most));
    }
    let id = ask.param().parse::<TokenId>().map_err(|_| Rejection::TokenUnknown)?;
    let old = ask.engine().token(id).await?.ok_or(Rejection::TokenUnknown)?;
    let now = ask.engine().now();
    if !old.is_live(now) {
        return Err(Rejection::TokenUnknown.into());
    }
    let whose = (old.tenant.clone(), old.user.clone());
    let (text, token) = auth::fresh(ask.engine(), whose, old.roles, who.user.clone());
    // It ends when the old one would have.
    let token = Token { expires_at: old.expires_at, issued_with: Some(who.token), ..token };
    let end = match overlap {
        0 => Command::RevokeToken { token: id },
        seconds => Command::ExpireToken { token: id, at: now + Duration::from_secs(seconds) },
    };
    let mut answer = shown(&token);
    let note = Note {
        action: "token.rotate",
        object_type: "token",
        object_id: id.to_string(),
        before: audit::json(&shown(&old)),
        after: audit::json(&answer),
        ..Note::default()
    };
    answer.token = Some(text);
    let commands = vec![end, Command::IssueToken(Box::new(token))];
    audit::change_together(&ask, &who, commands, note).await?;
    Ok(Reply::status_data(StatusCode::CREATED, &answer))
}

/// Who asks, as the server knows them: everybody may learn that.
pub(super) async fn whoami(_ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    Ok(Reply::data(&api::token::Caller {
        tenant_id: who.tenant.to_string(),
        user_id: who.user.to_string(),
        roles: who.roles.iter().map(|role| role.as_str().to_owned()).collect(),
    }))
}

pub(super) async fn list(ask: Ask, _who: Principal) -> Result<Reply, Refusal> {
    let query = ask.query(&["limit", "cursor"])?;
    let place = digest(&[b"tokens"]);
    let after = filters::before(&query, place)?.map(TokenId);
    let limit = query.limit()?;
    let mut tokens = ask.engine().tokens().await?;
    let total = Some(tokens.len() as u64);
    tokens.retain(|token| after.is_none_or(|after| token.id > after));
    let has_more = tokens.len() > limit;
    tokens.truncate(limit);
    let next_cursor =
        tokens.last().filter(|_| has_more).map(|token| cursor::write(place, token.id.0));
    let items = tokens.iter().map(shown).collect();
    Ok(Reply::data(&api::Page { items, next_cursor, total, total_at_least: None }))
}

/// Revoking twice is answered alike: the token is gone.
pub(super) async fn revoke(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let id = ask.param().parse::<TokenId>().map_err(|_| Rejection::TokenUnknown)?;
    let token = ask.engine().token(id).await?.ok_or(Rejection::TokenUnknown)?;
    if token.revoked_at.is_some() {
        return Ok(Reply::data(&shown(&token)));
    }
    let note = Note {
        action: "token.revoke",
        object_type: "token",
        object_id: id.to_string(),
        before: audit::json(&shown(&token)),
        ..Note::default()
    };
    audit::change(&ask, &who, Command::RevokeToken { token: id }, note).await?;
    let token = ask.engine().token(id).await?.ok_or(Rejection::TokenUnknown)?;
    Ok(Reply::data(&shown(&token)))
}

fn shown(token: &Token) -> api::token::Token {
    api::token::Token {
        token_id: token.id.to_string(),
        tenant_id: token.tenant.to_string(),
        user_id: token.user.to_string(),
        roles: token.roles.iter().map(|role| role.as_str().to_owned()).collect(),
        issued_at: api::Time(token.issued_at.0),
        issued_by: token.issued_by.to_string(),
        issued_with: token.issued_with.map(|parent| parent.to_string()),
        expires_at: token.expires_at.map(|at| api::Time(at.0)),
        revoked_at: token.revoked_at.map(|at| api::Time(at.0)),
        token: None,
    }
}
