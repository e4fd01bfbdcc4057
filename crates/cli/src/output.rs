//! What commands print: tables for people, JSON for programs. Text that came from the server is
//! never trusted in a table: a job's error message must not move the cursor or recolour the screen.

mod table;
mod when;

use console::Term;
use serde_json::Value;
use std::io::{IsTerminal, Write};

pub(crate) use when::{be_exact, clock, when};

/// The form of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum Output {
    /// For people
    #[default]
    Table,
    /// For programs
    Json,
}

/// Cells longer than this are cut in tables; JSON always has everything.
const CELL_CHARS_MAX: usize = 120;

/// A table with these columns.
pub(crate) fn table(columns: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let cells = |row: Vec<String>| -> Vec<String> {
        row.iter().map(|cell| cut(&plain(cell), CELL_CHARS_MAX)).collect()
    };
    let rows: Vec<Vec<String>> = rows.into_iter().map(cells).collect();
    if rows.is_empty() {
        return "nothing to show".into();
    }
    table::lay_out(columns, &rows, width(), console::colors_enabled())
}

/// How wide the terminal is, if the answer goes to one.
pub(crate) fn width() -> Option<usize> {
    let size = Term::stdout().size_checked().filter(|_| std::io::stdout().is_terminal());
    size.map(|(_, columns)| usize::from(columns)).filter(|columns| *columns > 0)
}

/// How many lines the terminal has, if the answer goes to one.
pub(crate) fn height() -> Option<usize> {
    let size = Term::stdout().size_checked().filter(|_| std::io::stdout().is_terminal());
    size.map(|(lines, _)| usize::from(lines)).filter(|lines| *lines > 0)
}

/// How wide the terminal is that complaints go to, if it is one.
pub(crate) fn width_of_complaints() -> Option<usize> {
    let size = Term::stderr().size_checked().filter(|_| std::io::stderr().is_terminal());
    size.map(|(_, columns)| usize::from(columns)).filter(|columns| *columns > 0)
}

/// Text whose lines break between words; what goes on is indented by so much. What is laid out
/// already (tables, code) is left as it is.
pub(crate) fn wrapped(text: &str, width: Option<usize>, indent: usize) -> String {
    let Some(width) = width.filter(|width| *width > indent + 20) else { return text.to_owned() };
    let mut out = String::with_capacity(text.len() + text.len() / 40);
    for line in text.lines() {
        if line.starts_with(['|', '#', '`']) || line.starts_with("    ") {
            out.push_str(line);
            out.push('\n');
            continue;
        }
        let begun = line.len() - line.trim_start().len();
        out.push_str(&line[..begun]);
        let mut taken = begun;
        for (nth, word) in line.split_whitespace().enumerate() {
            let long = console::measure_text_width(word);
            if nth > 0 && taken + 1 + long > width {
                out.push('\n');
                out.extend(std::iter::repeat_n(' ', indent));
                taken = indent;
            } else if nth > 0 {
                out.push(' ');
                taken += 1;
            }
            out.push_str(word);
            taken += long;
        }
        out.push('\n');
    }
    out.truncate(out.trim_end().len());
    out
}

/// A line that is no longer than the terminal is wide; colours stay what they are.
pub(crate) fn fitted(line: &str) -> String {
    match width() {
        Some(width) => console::truncate_str(line, width, "…").into_owned(),
        None => line.to_owned(),
    }
}

/// A word that tells a state, in its colour.
pub(crate) fn painted(word: &str) -> String {
    match table::style_of(word).filter(|_| console::colors_enabled()) {
        Some(style) => style.apply_to(word).to_string(),
        None => word.to_owned(),
    }
}

/// Name and value, one per line, without cutting.
pub(crate) fn record(fields: &[(&str, String)]) -> String {
    let width = fields.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut lines = Vec::new();
    for (name, value) in fields {
        lines.push(format!("{name:width$}  {}", plain(value)));
    }
    lines.join("\n")
}

/// Prints a line. A reader that went away (`| head`) is no error worth a message.
pub(crate) fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{text}");
    let _ = out.flush();
}

/// Prints JSON as it is, indented.
pub(crate) fn say_json(value: &Value) {
    say(&format!("{value:#}"));
}

/// Prints any wire type as JSON.
pub(crate) fn say_wire<T: serde::Serialize>(value: &T) -> anyhow::Result<()> {
    say(&serde_json::to_string_pretty(value)?);
    Ok(())
}

/// The text without terminal escapes and control characters. Line ends and tabs become spaces.
pub(crate) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => skip_escape(&mut chars),
            // The one-character form of ESC [.
            '\u{9b}' => skip_control_sequence(&mut chars),
            '\n' | '\r' | '\t' => out.push(' '),
            _ if c.is_control() || is_direction_mark(c) => {}
            _ => out.push(c),
        }
    }
    out
}

/// As [`plain`], but line ends stay.
pub(crate) fn plain_lines(text: &str) -> String {
    text.lines().map(plain).collect::<Vec<_>>().join("\n")
}

/// Marks that make text read in another order than it is stored.
fn is_direction_mark(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}')
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn skip_escape(chars: &mut Chars<'_>) {
    match chars.peek() {
        Some('[') => {
            chars.next();
            skip_control_sequence(chars);
        }
        // OSC, DCS, SOS, PM, APC: a string up to BEL or ESC \.
        Some(']' | 'P' | 'X' | '^' | '_') => {
            chars.next();
            while let Some(c) = chars.next() {
                if c == '\u{7}' || c == '\u{9c}' {
                    return;
                }
                if c == '\u{1b}' {
                    if chars.peek() == Some(&'\\') {
                        chars.next();
                    }
                    return;
                }
            }
        }
        Some(_) => {
            chars.next();
        }
        None => {}
    }
}

fn skip_control_sequence(chars: &mut Chars<'_>) {
    while let Some(c) = chars.peek() {
        let c = *c;
        if !('\u{20}'..='\u{7e}').contains(&c) {
            return;
        }
        chars.next();
        if ('\u{40}'..='\u{7e}').contains(&c) {
            return;
        }
    }
}

fn cut(text: &str, chars_max: usize) -> String {
    if text.chars().count() <= chars_max {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(chars_max - 1).collect();
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_escapes_do_not_reach_the_screen() {
        for (text, shown) in [
            ("\u{1b}[31mred\u{1b}[0m", "red"),
            ("\u{1b}]0;title\u{7}after", "after"),
            ("\u{1b}]8;;http://x\u{1b}\\link", "link"),
            ("\u{9b}2Jgone", "gone"),
            ("a\u{7}b\u{8}c\u{0}", "abc"),
            ("line\nnext\tcell\r", "line next cell "),
            ("\u{1b}", ""),
            ("\u{1b}[", ""),
            ("\u{1b}c\u{1b}7ok", "ok"),
            ("grüße 漢字 ✓", "grüße 漢字 ✓"),
            ("\u{202e}txt.exe", "txt.exe"),
        ] {
            assert_eq!(plain(text), shown, "{text:?}");
        }
    }

    #[test]
    fn lines_break_between_words_and_what_is_laid_out_stays() {
        let text = "  cure: one two three four five six seven\n| a table, however long it may be |";
        let told = wrapped(text, Some(30), 4);
        assert_eq!(
            told,
            "  cure: one two three four\n    five six seven\n| a table, however long it may be |"
        );
        assert_eq!(wrapped(text, None, 4), text);
    }

    #[test]
    fn tables_cut_long_cells_and_say_when_empty() {
        let shown = table(&["id", "message"], [vec!["1".into(), "x".repeat(500)]]);
        assert!(
            shown.contains('…') && shown.starts_with(" ID") || shown.starts_with("ID"),
            "{shown}"
        );
        assert!(!shown.contains(&"x".repeat(200)));
        assert_eq!(table(&["id"], []), "nothing to show");
    }
}
