//! The page of every error code, and the cure that it names. The pages are those of `docs/errors`.

/// Code and page, by code.
static PAGES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/pages.rs"));

/// Every code that has a page.
pub(crate) fn codes() -> impl Iterator<Item = &'static str> {
    PAGES.iter().map(|(code, _)| *code)
}

/// The page of a code.
pub(crate) fn page(code: &str) -> Option<&'static str> {
    let at = PAGES.binary_search_by_key(&code, |(code, _)| code).ok()?;
    Some(PAGES[at].1)
}

/// What to do about it, in one paragraph.
pub(crate) fn cure(code: &str) -> Option<String> {
    let page = page(code)?;
    let text = match page.split_once("**Cure.**") {
        Some((_, text)) => text,
        None => page.split_once("## Cure\n")?.1,
    };
    let paragraph = text.trim_start().split("\n\n").next()?;
    let words = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
    Some(words).filter(|words| !words.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_names_a_cure() {
        assert!(PAGES.len() > 100, "{}", PAGES.len());
        assert!(PAGES.is_sorted());
        for code in codes() {
            let cure = cure(code).unwrap_or_else(|| panic!("{code} has no cure"));
            assert!(cure.len() > 8 && !cure.starts_with('#'), "{code}: {cure}");
        }
        assert_eq!(cure("JOB_NOT_FOUND").unwrap(), "Check the id and whose token you use.");
        assert_eq!(page("NO_SUCH_CODE"), None);
    }

    #[test]
    fn every_code_that_a_server_can_say_has_a_page() {
        for code in mainspring_server::error_codes() {
            assert!(page(code).is_some(), "{code}");
        }
    }
}
