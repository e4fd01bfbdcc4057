//! Who is signed in: a random id in a cookie leads to the id of a token, never to its secret. Every
//! request looks the token up, so that whoever revokes it ends its sessions, too. Kept in this
//! process only: `docs/decisions/0016-dashboard-sessions.md` says why.

use crate::limits::{SESSION_HOURS_MAX, SESSIONS_MAX, SESSIONS_PER_TOKEN_MAX};
use mainspring_kernel::{Timestamp, TokenId};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use subtle::ConstantTimeEq;

const LIFE: Duration = Duration::from_secs(SESSION_HOURS_MAX * 3_600);

/// Something to say on the next page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Flash {
    /// Whether it went well.
    pub(crate) is_good: bool,
    pub(crate) text: String,
    /// The code of a refusal.
    pub(crate) code: Option<&'static str>,
}

#[derive(Debug)]
struct Session {
    token: TokenId,
    /// What forms of this session carry.
    form: String,
    since: Timestamp,
    /// Which one it is, counted from the start of the process.
    number: u64,
    flash: Option<Flash>,
}

/// Everybody who is signed in, by a digest of what their cookie says: what is compared byte by byte
/// is nothing that a caller can choose.
#[derive(Debug, Default)]
pub(crate) struct Sessions(Mutex<Held>);

#[derive(Debug, Default)]
struct Held {
    count: u64,
    sessions: HashMap<[u8; 32], Session, foldhash::fast::RandomState>,
}

impl Sessions {
    /// Signs in: the cookie's text is `id`, and `form` is what its forms carry.
    pub(crate) fn begin(&self, (id, form): (&str, String), token: TokenId, now: Timestamp) {
        let mut held = self.held();
        held.sessions.retain(|_, session| session.is_on(now));
        let of_token = held.sessions.values().filter(|session| session.token == token).count();
        if of_token >= SESSIONS_PER_TOKEN_MAX {
            held.drop_first(|session| session.token == token);
        }
        if held.sessions.len() >= SESSIONS_MAX {
            held.drop_first(|_| true);
        }
        held.count += 1;
        let number = held.count;
        held.sessions.insert(key(id), Session { token, form, since: now, number, flash: None });
    }

    /// The token of a session that goes on.
    pub(crate) fn token(&self, id: &str, now: Timestamp) -> Option<TokenId> {
        let held = self.held();
        held.sessions.get(&key(id)).filter(|session| session.is_on(now)).map(|it| it.token)
    }

    /// What the forms of a session carry.
    pub(crate) fn form(&self, id: &str) -> Option<String> {
        self.held().sessions.get(&key(id)).map(|session| session.form.clone())
    }

    /// Whether a form carries what those of the session do.
    pub(crate) fn is_ours(&self, id: &str, given: &str) -> bool {
        let held = self.held();
        let session = held.sessions.get(&key(id));
        session.is_some_and(|it| bool::from(it.form.as_bytes().ct_eq(given.as_bytes())))
    }

    /// Signs out.
    pub(crate) fn end(&self, id: &str) {
        self.held().sessions.remove(&key(id));
    }

    /// Says something on the next page of the session.
    pub(crate) fn say(&self, id: &str, flash: Flash) {
        if let Some(session) = self.held().sessions.get_mut(&key(id)) {
            session.flash = Some(flash);
        }
    }

    /// What there is to say, once.
    pub(crate) fn said(&self, id: &str) -> Option<Flash> {
        self.held().sessions.get_mut(&key(id)).and_then(|session| session.flash.take())
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    fn drop_first(&mut self, is_one: impl Fn(&Session) -> bool) {
        let ones = self.sessions.iter().filter(|(_, session)| is_one(session));
        let first = ones.min_by_key(|(_, session)| session.number).map(|(key, _)| *key);
        first.map(|key| self.sessions.remove(&key));
    }
}

impl Session {
    fn is_on(&self, now: Timestamp) -> bool {
        now.since(self.since) < LIFE
    }
}

fn key(id: &str) -> [u8; 32] {
    Sha256::digest(id.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp(1_000_000_000);

    fn begin(sessions: &Sessions, id: &str, token: u128) {
        sessions.begin((id, format!("form of {id}")), TokenId(token), START);
    }

    #[test]
    fn a_session_ends_by_itself_and_by_hand() {
        let sessions = Sessions::default();
        begin(&sessions, "one", 7);
        assert_eq!(sessions.token("one", START), Some(TokenId(7)));
        assert_eq!(sessions.token("two", START), None);
        let almost = START + LIFE - Duration::from_secs(1);
        assert_eq!(sessions.token("one", almost), Some(TokenId(7)));
        assert_eq!(sessions.token("one", START + LIFE), None);
        sessions.end("one");
        assert_eq!(sessions.token("one", START), None);
    }

    #[test]
    fn forms_belong_to_their_session() {
        let sessions = Sessions::default();
        begin(&sessions, "one", 7);
        begin(&sessions, "two", 7);
        assert!(sessions.is_ours("one", "form of one"));
        for other in ["form of two", "", "form of on", "form of one "] {
            assert!(!sessions.is_ours("one", other), "{other}");
        }
        assert!(!sessions.is_ours("three", "form of three"));
    }

    #[test]
    fn there_are_only_so_many_and_the_first_goes() {
        let sessions = Sessions::default();
        for n in 0..=SESSIONS_PER_TOKEN_MAX {
            begin(&sessions, &format!("a{n}"), 1);
        }
        assert_eq!(sessions.token("a0", START), None, "one too many of a token");
        assert_eq!(sessions.token("a1", START), Some(TokenId(1)));
        for n in 0..SESSIONS_MAX {
            begin(&sessions, &format!("b{n}"), 2 + n as u128);
        }
        assert_eq!(sessions.held().sessions.len(), SESSIONS_MAX);
        assert_eq!(sessions.token("a16", START), None, "one too many of all");
        assert!(sessions.token(&format!("b{}", SESSIONS_MAX - 1), START).is_some());
    }

    #[test]
    fn what_is_said_is_said_once() {
        let sessions = Sessions::default();
        begin(&sessions, "one", 7);
        let flash = Flash { is_good: true, text: "done".to_owned(), code: None };
        sessions.say("one", flash.clone());
        assert_eq!(sessions.said("one"), Some(flash));
        assert_eq!(sessions.said("one"), None);
    }
}
