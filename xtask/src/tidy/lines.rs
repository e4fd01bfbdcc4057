//! Splits Rust source into lines of code, comment and string, for rules that must not confuse them.
//!
//! It is a lexer for exactly that question and knows nothing else about Rust. Without it a rule's
//! own name in a string, here or in a test, would break the rule.

/// One line of a source file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Line {
    /// The code, with every string and character literal emptied.
    pub(crate) code: String,
    /// The text of comments, from their `//` or `/*` on.
    pub(crate) comment: String,
    /// Whether a string literal touches the line.
    pub(crate) has_string: bool,
}

#[derive(Clone, Copy)]
enum State {
    Code,
    LineComment,
    BlockComment { depth: usize },
    Text,
    RawText { hashes: usize },
}

/// The lines of a source file, in order.
pub(crate) fn split(source: &str) -> Vec<Line> {
    let chars: Vec<char> = source.chars().collect();
    let mut lines = vec![Line::default()];
    let mut state = State::Code;
    let mut at = 0;
    while at < chars.len() {
        let rest = &chars[at..];
        if rest[0] == '\n' {
            lines.push(Line::default());
            if matches!(state, State::LineComment) {
                state = State::Code;
            }
            at += 1;
            continue;
        }
        let line = lines.last_mut().expect("there is always a current line");
        let (length, next) = match state {
            State::Code => in_code(rest, line),
            State::LineComment => (1, state),
            State::BlockComment { depth } => in_block_comment(rest, depth),
            State::Text => in_text(rest, line),
            State::RawText { hashes } => in_raw_text(rest, hashes, line),
        };
        if let State::LineComment | State::BlockComment { .. } = state {
            line.comment.extend(&rest[..length]);
        }
        at += length;
        state = next;
    }
    lines
}

fn in_code(rest: &[char], line: &mut Line) -> (usize, State) {
    if rest.starts_with(&['/', '/']) {
        line.comment.push_str("//");
        return (2, State::LineComment);
    }
    if rest.starts_with(&['/', '*']) {
        line.comment.push_str("/*");
        return (2, State::BlockComment { depth: 1 });
    }
    let is_in_word = line.code.ends_with(|last: char| last.is_alphanumeric() || last == '_');
    if rest[0] == 'r' && (!is_in_word || is_prefix_end(&line.code)) {
        let hashes = rest[1..].iter().take_while(|next| **next == '#').count();
        if rest.get(1 + hashes) == Some(&'"') {
            line.has_string = true;
            line.code.push('"');
            return (2 + hashes, State::RawText { hashes });
        }
    }
    match rest {
        ['"', ..] => {
            line.has_string = true;
            line.code.push('"');
            (1, State::Text)
        }
        ['\'', '\\', _, tail @ ..] => {
            let length = tail.iter().position(|next| *next == '\'').unwrap_or(0);
            (length + 4, State::Code)
        }
        ['\'', _, '\'', ..] => (3, State::Code),
        [other, ..] => {
            line.code.push(*other);
            (1, State::Code)
        }
        [] => (1, State::Code),
    }
}

/// Whether the code ends in the `b` or `c` of `br"` or `cr"`.
fn is_prefix_end(code: &str) -> bool {
    let mut last = code.chars().rev();
    let is_prefix = last.next().is_some_and(|letter| letter == 'b' || letter == 'c');
    is_prefix && !last.next().is_some_and(|letter| letter.is_alphanumeric() || letter == '_')
}

fn in_block_comment(rest: &[char], depth: usize) -> (usize, State) {
    match rest {
        ['/', '*', ..] => (2, State::BlockComment { depth: depth + 1 }),
        ['*', '/', ..] if depth == 1 => (2, State::Code),
        ['*', '/', ..] => (2, State::BlockComment { depth: depth - 1 }),
        _ => (1, State::BlockComment { depth }),
    }
}

fn in_text(rest: &[char], line: &mut Line) -> (usize, State) {
    line.has_string = true;
    match rest {
        // A backslash before a line end continues the string; the line end is counted elsewhere.
        ['\\', '\n', ..] => (1, State::Text),
        ['\\', _, ..] => (2, State::Text),
        ['"', ..] => {
            line.code.push('"');
            (1, State::Code)
        }
        _ => (1, State::Text),
    }
}

fn in_raw_text(rest: &[char], hashes: usize, line: &mut Line) -> (usize, State) {
    line.has_string = true;
    let is_end =
        rest[0] == '"' && rest.len() > hashes && rest[1..=hashes].iter().all(|next| *next == '#');
    if !is_end {
        return (1, State::RawText { hashes });
    }
    line.code.push('"');
    (1 + hashes, State::Code)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(source: &str) -> Vec<String> {
        split(source).into_iter().map(|line| line.code).collect()
    }

    #[test]
    fn strings_are_emptied_and_comments_set_apart() {
        let lines = split("let a = \"x // y\"; // said\n/* one /* two */ */ b");
        assert_eq!(lines[0].code, "let a = \"\"; ");
        assert_eq!(lines[0].comment, "// said");
        assert!(lines[0].has_string && !lines[1].has_string);
        assert_eq!(lines[1].code, " b");
    }

    #[test]
    fn escapes_and_raw_strings_end_where_they_end() {
        assert_eq!(
            code(r##"("\"", r"\", r#"a"b"#, br"x", b"y") // z"##),
            [r#"("", "", "", b"", b"") "#]
        );
        assert_eq!(code("var\"x\""), ["var\"\""]);
    }

    #[test]
    fn a_string_over_several_lines_touches_each() {
        let lines = split("f(\"one \\\n two\nthree\") + 1");
        assert!(lines.iter().all(|line| line.has_string));
        assert_eq!(lines[2].code, "\") + 1");
    }

    #[test]
    fn characters_are_not_lifetimes() {
        assert_eq!(
            code(r#"f('"', '\'', '\u{1F}') && g::<'a>("x")"#),
            [r#"f(, , ) && g::<'a>("")"#]
        );
    }
}
