//! JSON as text for people: in lines, and otherwise as it is. Numbers are not read, so none is
//! rounded, and nothing is parsed into a tree that a caller could make deep.

/// `json` in lines, and how many bytes of it are left out after `most`.
pub(super) fn lines(json: &str, most: usize) -> (String, usize) {
    let end = json.floor_char_boundary(most);
    let (shown, rest) = json.split_at(end);
    (indented(shown), rest.len())
}

fn indented(json: &str) -> String {
    let mut out = String::with_capacity(json.len() * 2);
    let (mut depth, mut in_string, mut is_escaped) = (0_usize, false, false);
    let mut letters = json.chars().peekable();
    while let Some(letter) = letters.next() {
        if in_string {
            out.push(letter);
            in_string = is_escaped || letter != '"';
            is_escaped = letter == '\\' && !is_escaped;
            continue;
        }
        match letter {
            '"' => {
                in_string = true;
                out.push(letter);
            }
            '{' | '[' => {
                out.push(letter);
                while letters.next_if(|next| next.is_ascii_whitespace()).is_some() {}
                if let Some(close) = letters.next_if(|next| matches!(next, '}' | ']')) {
                    out.push(close);
                } else {
                    depth += 1;
                    line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut out, depth);
                out.push(letter);
            }
            ',' => {
                out.push(letter);
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            space if space.is_ascii_whitespace() => {}
            other => out.push(other),
        }
    }
    out
}

fn line(out: &mut String, depth: usize) {
    out.push('\n');
    // Deep nests are shown flat from some depth on; the text stays the same.
    out.extend(std::iter::repeat_n("  ", depth.min(16)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_strings_stay_as_they_are() {
        let json = r#"{"big":12345678901234567890.10,"e":1e400,"s":"a,{\"b\":[1]}\\","n":null,"o":{},"l":[ ],"m":[1, 2]}"#;
        let (text, rest) = lines(json, usize::MAX);
        assert_eq!(rest, 0);
        assert_eq!(
            text,
            "{\n  \"big\": 12345678901234567890.10,\n  \"e\": 1e400,\n  \"s\": \
             \"a,{\\\"b\\\":[1]}\\\\\",\n  \"n\": null,\n  \"o\": {},\n  \"l\": [],\n  \"m\": [\n    \
             1,\n    2\n  ]\n}"
        );
    }

    #[test]
    fn what_is_long_is_cut_between_letters() {
        let (text, rest) = lines("\"ééé\"", 4);
        assert_eq!((text.as_str(), rest), ("\"é", 5));
        let deep = "[".repeat(100_000);
        assert!(lines(&deep, 1_000).0.len() < 100_000);
    }
}
