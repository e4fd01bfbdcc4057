//! The header `traceparent` of W3C Trace Context: it says in which trace of another system a job
//! was submitted, and by which step of it. It is carried to whoever works on the job, and never
//! used.
//!
//! A caller that gets it wrong is not refused: the standard says to go on as if there were none.

/// How long one is that we write.
const BYTES: usize = 55;

/// The value as it is carried on, if it is one. Of later versions that which is known of this one.
pub fn carried(text: &str) -> Option<Box<str>> {
    let parts: Vec<&str> = text.get(..BYTES)?.split('-').collect();
    let [version, trace, parent, flags] = parts.as_slice() else { return None };
    let is_hex = |part: &&str, len: usize| {
        part.len() == len && part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let is_whole = [(version, 2), (trace, 32), (parent, 16), (flags, 2)]
        .into_iter()
        .all(|(part, len)| is_hex(part, len));
    let is_nothing = |part: &str| part.bytes().all(|byte| byte == b'0');
    if !is_whole || is_nothing(trace) || is_nothing(parent) {
        return None;
    }
    match (*version, &text[BYTES..]) {
        ("00", "") => Some(text.into()),
        ("00" | "ff", _) => None,
        // Of later versions only one flag is known.
        (_, rest) if rest.is_empty() || rest.starts_with('-') => {
            let flags = u8::from_str_radix(flags, 16).ok()? & 1;
            Some(format!("00-{trace}-{parent}-{flags:02x}").into())
        }
        (_, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_one_is_carried_and_what_is_none_is_not() {
        let (trace, parent) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
        for flags in ["00", "01", "ff"] {
            let good = format!("00-{trace}-{parent}-{flags}");
            assert_eq!(carried(&good).as_deref(), Some(&*good));
        }
        let known = format!("00-{trace}-{parent}-01");
        for later in ["01-T-P-01", "cc-T-P-09", "fe-T-P-ff-what-else"] {
            let text = later.replace('T', trace).replace('P', parent);
            assert_eq!(carried(&text).as_deref(), Some(&*known), "{text}");
        }
        for bad in [
            "",
            "00",
            "00-T-P",
            "00-T-P-0",
            "00-T-P-01-",
            "00-T-P-01-more",
            "ff-T-P-01",
            "0-T-P-001",
            "01-T-P-01more",
            "00-00000000000000000000000000000000-P-01",
            "00-T-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-P-01",
            "00_T_P_01",
            " 00-T-P-01",
            "00-T-P-0\u{e9}",
            "0g-T-P-01",
        ] {
            let text = bad.replace('T', trace).replace('P', parent);
            assert_eq!(carried(&text), None, "{text}");
        }
    }
}
