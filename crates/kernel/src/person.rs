//! Who is the same person, and who made whom. The two-person rule in `decide/two_people.rs` asks
//! here.
//!
//! A person is a user id as a reader sees it: letter case, compatibility forms, invisible
//! characters and letters that look alike make no difference. Telling two people apart wrongly
//! would let one person act as two, so in doubt two spellings are one person. A token belongs to
//! the person it names, but whoever issued it has held its secret: its line of issuers says whose
//! hands it went through.

use crate::access::{Principal, Token};
use crate::id::TokenId;
use crate::name::UserId;
use crate::time::Timestamp;
use std::collections::{HashMap, HashSet};
use unicode_normalization::UnicodeNormalization;
use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};
use unicode_security::confusable_detection::skeleton;

/// A user id as a reader sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// Case folded, then reduced to what it looks like.
    folded: Box<str>,
    /// Reduced as it is written: some capitals look alike whose small letters do not.
    written: Box<str>,
}

impl Person {
    /// The person of that id.
    pub fn of(user: &UserId) -> Self {
        let plain: String = user.as_str().nfkc().filter(|c| !is_unseen(*c)).collect();
        Person { folded: bones(&fold(&plain)), written: bones(&plain) }
    }

    /// Whether both ids name one person.
    pub fn is(&self, other: &Person) -> bool {
        self.folded == other.folded || self.written == other.written
    }
}

/// Characters that leave no mark: blanks, controls, formats, and a Braille pattern without dots.
fn is_unseen(c: char) -> bool {
    let unseen = matches!(c.general_category(), GeneralCategory::Format | GeneralCategory::Control);
    unseen || c.is_whitespace() || c == '\u{2800}'
}

fn fold(text: &str) -> String {
    // Through the capitals, so that `ß` and `ss`, or the two small sigmas, are one.
    text.chars().flat_map(char::to_uppercase).flat_map(char::to_lowercase).nfkc().collect()
}

/// What the text looks like, after Unicode's table of confusable characters.
fn bones(text: &str) -> Box<str> {
    let shape: String = skeleton(text).collect();
    fold(&shape).into()
}

/// A token as the two-person rule looks at it: whose it is and where it comes from.
#[derive(Debug, Clone, Copy)]
pub struct Hand<'a> {
    /// Whose token it is.
    pub user: &'a UserId,
    /// Who issued it.
    pub issued_by: &'a UserId,
    /// With which token.
    pub issued_with: Option<TokenId>,
    /// When.
    pub issued_at: Timestamp,
}

impl<'a> From<&'a Token> for Hand<'a> {
    fn from(token: &'a Token) -> Self {
        Hand {
            user: &token.user,
            issued_by: &token.issued_by,
            issued_with: token.issued_with,
            issued_at: token.issued_at,
        }
    }
}

impl<'a> From<&'a Principal> for Hand<'a> {
    fn from(who: &'a Principal) -> Self {
        Hand {
            user: &who.user,
            issued_by: &who.token_issued_by,
            issued_with: who.token_issued_with,
            issued_at: who.token_issued_at,
        }
    }
}

/// Everybody there are tokens of. Remembers what it worked out, for the time of one decision.
pub struct People<'a> {
    /// Every token, by id.
    tokens: &'a [&'a Token],
    known: HashMap<&'a str, Person>,
}

impl<'a> People<'a> {
    /// The holders of `tokens`, which are in the order of their ids.
    pub fn new(tokens: &'a [&'a Token]) -> Self {
        debug_assert!(tokens.is_sorted_by_key(|token| token.id), "tokens come by id");
        People { tokens, known: HashMap::new() }
    }

    /// Every token.
    pub fn tokens(&self) -> &'a [&'a Token] {
        self.tokens
    }

    /// The token of that id.
    pub fn token(&self, id: TokenId) -> Option<&'a Token> {
        self.tokens.binary_search_by_key(&id, |token| token.id).ok().map(|at| self.tokens[at])
    }

    /// The person of that id.
    pub fn person(&mut self, user: &'a UserId) -> Person {
        self.known.entry(user.as_str()).or_insert_with(|| Person::of(user)).clone()
    }

    /// The tokens of one person.
    pub fn tokens_of(&mut self, person: &Person) -> Vec<&'a Token> {
        let tokens = self.tokens;
        tokens.iter().copied().filter(|token| self.person(&token.user).is(person)).collect()
    }

    /// Whether one person issued the other's token, directly or through others, or both are one.
    pub fn are_independent(&mut self, one: Hand<'a>, other: Hand<'a>) -> bool {
        let (first, second) = (self.person(one.user), self.person(other.user));
        !first.is(&second)
            && !self.line(one).iter().any(|issuer| issuer.is(&second))
            && !self.line(other).iter().any(|issuer| issuer.is(&first))
    }

    /// Everybody who had a hand in a token: who issued it, who issued the issuer's, and so on.
    ///
    /// Tokens of before this was kept do not say with which token they were issued; then every
    /// token their issuer had by then counts.
    fn line(&mut self, hand: Hand<'a>) -> Vec<Person> {
        let mut line: Vec<Person> = Vec::new();
        let mut seen: HashSet<TokenId> = HashSet::new();
        let mut open = vec![hand];
        while let Some(hand) = open.pop() {
            let issuer = self.person(hand.issued_by);
            let parents = match hand.issued_with.and_then(|id| self.token(id)) {
                Some(parent) => vec![parent],
                None => self.tokens_of(&issuer),
            };
            for parent in parents {
                let is_known_parent = hand.issued_with == Some(parent.id);
                let was_there = is_known_parent || parent.issued_at <= hand.issued_at;
                if was_there && seen.insert(parent.id) {
                    open.push(Hand::from(parent));
                }
            }
            if !line.contains(&issuer) {
                line.push(issuer);
            }
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_one(one: &str, other: &str) -> bool {
        let person = |text: &str| Person::of(&UserId::new(text).unwrap());
        let is = person(one).is(&person(other));
        assert_eq!(is, person(other).is(&person(one)), "{one:?} {other:?}");
        is
    }

    #[test]
    fn spellings_of_one_name_are_one_person() {
        for other in [
            "ANN",
            "Ann",
            "\u{ff41}nn",  // full width
            "a\u{200b}nn", // zero width space
            "ann\u{200d}", // zero width joiner
            "a\u{ad}nn",   // soft hyphen
            "\u{202e}ann", // right-to-left override
            "ann\u{fff9}", // interlinear annotation
            "ann\u{2800}", // Braille blank
            "an n",
            "\u{430}nn",   // Cyrillic a
            "\u{410}nn",   // Cyrillic capital A
            "\u{1d41a}nn", // mathematical bold a
            "an\u{1d5c7}", // mathematical sans-serif n
        ] {
            assert!(is_one("ann", other), "{other:?}");
        }
        assert!(is_one("stra\u{df}e", "STRASSE"));
        assert!(is_one("\u{c9}va", "E\u{301}VA"), "composed or not");
        assert!(is_one("\u{3c3}", "\u{3c2}"), "both small sigmas");
        assert!(is_one("HAL", "\u{397}AL"), "a capital Eta looks like H");
        assert!(is_one("paul", "pau1") && is_one("tim", "tirn"));
    }

    #[test]
    fn different_names_are_different_people() {
        for (one, other) in
            [("ann", "anna"), ("ann", "bob"), ("p-1", "p-2"), ("ann@a.org", "ann@b.org")]
        {
            assert!(!is_one(one, other), "{one:?} {other:?}");
        }
        assert!(!is_one("eva", "\u{e9}va"), "an accent is seen");
    }
}
