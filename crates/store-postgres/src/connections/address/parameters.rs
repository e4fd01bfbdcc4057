//! The parameters of an address, found as the driver finds them: those that it does not know have
//! to be taken out before it reads the rest.

use percent_encoding::percent_decode_str;
use std::iter::Peekable;
use std::str::CharIndices;

/// The address without the parameters of these names, and what they said, in their order. Whatever
/// cannot be read stays as it is; the driver says so.
pub(crate) fn without(address: &str, names: &[&str]) -> (String, Vec<(String, String)>) {
    let is_url = address.starts_with("postgres://") || address.starts_with("postgresql://");
    let (start, found, between) = match is_url {
        true => match in_url(address) {
            Some((start, found)) => (start, found, "&"),
            None => return (address.to_owned(), Vec::new()),
        },
        false => match Pairs::of(address).collect::<Option<Vec<_>>>() {
            Some(found) => ("", found, " "),
            None => return (address.to_owned(), Vec::new()),
        },
    };
    let is_taken = |one: &Parameter<'_>| names.contains(&one.name.as_str());
    let (taken, kept): (Vec<_>, Vec<_>) = found.into_iter().partition(is_taken);
    let kept: Vec<&str> = kept.iter().map(|one| one.written).collect();
    let taken = taken.into_iter().map(|one| (one.name, one.value)).collect();
    (format!("{start}{}", kept.join(between)), taken)
}

struct Parameter<'a> {
    name: String,
    value: String,
    /// As it stands in the address.
    written: &'a str,
}

/// The URL up to its parameters, and these. Everything before an `@` is user and password, whatever
/// else stands there.
fn in_url(url: &str) -> Option<(&str, Vec<Parameter<'_>>)> {
    let host_at = url.find('@').map_or(0, |at| at + 1);
    let parameters_at = host_at + url[host_at..].find('?')? + 1;
    let (start, rest) = url.split_at(parameters_at);
    let decoded = |text| Some(percent_decode_str(text).decode_utf8().ok()?.into_owned());
    let read = |written| {
        let (name, value) = str::split_once(written, '=')?;
        Some(Parameter { name: decoded(name)?, value: decoded(value)?, written })
    };
    let written = rest.split('&').filter(|text| !text.is_empty());
    Some((start, written.map(read).collect::<Option<_>>()?))
}

/// `key = value` pairs; a value may stand in quotes, and a backslash takes the next character as it
/// is.
struct Pairs<'a> {
    text: &'a str,
    rest: Peekable<CharIndices<'a>>,
}

impl<'a> Pairs<'a> {
    fn of(text: &'a str) -> Self {
        Pairs { text, rest: text.char_indices().peekable() }
    }

    fn place(&mut self) -> usize {
        self.rest.peek().map_or(self.text.len(), |(at, _)| *at)
    }

    fn skip(&mut self, is_skipped: fn(char) -> bool) {
        while self.rest.next_if(|(_, c)| is_skipped(*c)).is_some() {}
    }

    fn value(&mut self) -> Option<String> {
        let is_quoted = self.rest.next_if(|(_, c)| *c == '\'').is_some();
        let mut value = String::new();
        loop {
            let is_end = |c: char| if is_quoted { c == '\'' } else { c.is_whitespace() };
            match self.rest.next_if(|(_, c)| !is_end(*c)) {
                Some((_, '\\')) => value.extend(self.rest.next().map(|(_, c)| c)),
                Some((_, c)) => value.push(c),
                None => break,
            }
        }
        match is_quoted {
            true => self.rest.next().map(|_| value),
            false => Some(value).filter(|value| !value.is_empty()),
        }
    }

    fn pair(&mut self, start: usize) -> Option<Parameter<'a>> {
        self.skip(|c| !c.is_whitespace() && c != '=');
        let name = self.text[start..self.place()].to_owned();
        self.skip(char::is_whitespace);
        self.rest.next_if(|(_, c)| *c == '=')?;
        self.skip(char::is_whitespace);
        let value = self.value()?;
        Some(Parameter { name, value, written: &self.text[start..self.place()] })
    }
}

impl<'a> Iterator for Pairs<'a> {
    type Item = Option<Parameter<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.skip(char::is_whitespace);
        let start = self.place();
        (start < self.text.len()).then(|| self.pair(start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_taken_out_of_both_forms() {
        for (address, rest, taken) in [
            ("postgres://u:p@h/db", "postgres://u:p@h/db", ""),
            ("postgres://h/db?a=1", "postgres://h/db?", "1"),
            ("postgresql://u@h/db?b=2&a=x%2Fy&c=3", "postgresql://u@h/db?b=2&c=3", "x/y"),
            ("postgres://h/db?a=1&a=2", "postgres://h/db?", "1 2"),
            ("postgres://u:p?a=1@h/db?a=2", "postgres://u:p?a=1@h/db?", "2"),
            ("postgres://h/db?%61=1", "postgres://h/db?", "1"),
            ("host=h a=1 user=u", "host=h user=u", "1"),
            ("a = '1 \\'2' host=h", "host=h", "1 '2"),
            ("host=h password='a=1' a=x\\ y", "host=h password='a=1'", "x y"),
            ("", "", ""),
        ] {
            let (left, values) = without(address, &["a"]);
            let values: Vec<String> = values.into_iter().map(|(_, value)| value).collect();
            assert_eq!((left.as_str(), values.join(" ").as_str()), (rest, taken), "{address}");
        }
    }

    #[test]
    fn what_cannot_be_read_stays_as_it_is() {
        for address in ["postgres://h/db?a", "host=h a='1", "a=1 hush", "a=", "postgres://h?a=%ff"]
        {
            assert_eq!(without(address, &["a"]), (address.to_owned(), Vec::new()));
        }
    }
}
