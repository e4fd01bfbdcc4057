//! A walk over pages as different people see them: wide and narrow, light and dark, in both
//! languages. Nothing sticks out, axe-core finds nothing serious, and with `MAINSPRING_PICTURES` in
//! the environment, an absolute path, pictures are kept there, to be looked at.

use super::Browser;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::OnceLock;

/// Says where the script of axe-core is; `cargo xtask axe` gets it.
const AXE: &str = "MAINSPRING_AXE";

/// Says where pictures are kept.
const PICTURES: &str = "MAINSPRING_PICTURES";

/// How a page is looked at: language, width, colours, and whether it is looked at closely, by
/// axe-core and for pictures: each language in each set of colours once, and both widths.
const LOOKS: [(&str, u32, &str, bool); 8] = [
    ("en", 1440, "light", true),
    ("en", 1440, "dark", false),
    ("en", 390, "light", false),
    ("en", 390, "dark", true),
    ("zh-CN", 1440, "light", false),
    ("zh-CN", 1440, "dark", true),
    ("zh-CN", 390, "light", true),
    ("zh-CN", 390, "dark", false),
];

/// How wide a page is, its language, ids that do not stand on one line as a whole, and whether the
/// strips of links, which may be wider than the screen, show the current one.
const SEEN: &str = "\
const isId = (one) => /^[a-z]+_[0-9a-z]{26}$/.test(one.textContent.trim());
const isBroken = (one) => one.getClientRects().length > 1
  || (one.clientWidth > 0 && one.scrollWidth > one.clientWidth + 1);
const ids = [...document.querySelectorAll('main .id, main .whole, main a')].filter(isId);
const isSeen = (link) => {
  const [strip, it] = [link.closest('.side, .tabs'), link].map((one) => one.getBoundingClientRect());
  return it.left >= strip.left - 1 && it.right <= strip.right + 1;
};
const current = [...document.querySelectorAll('.side [aria-current], .tabs [aria-current]')];
return [document.documentElement.scrollWidth, document.documentElement.lang,
  ids.filter(isBroken).map((one) => one.outerHTML), current.every(isSeen)];
";

/// What axe-core finds serious or worse, each as a line. `arguments[0]` is who to tell.
const SERIOUS: &str = "\
const done = arguments[0];
const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice'];
const wish = { resultTypes: ['violations'], preload: false, runOnly: { type: 'tag', values: tags } };
const line = (found) => `${found.impact} ${found.id}: ${found.help}: ` + found.nodes.slice(0, 4)
  .map((node) => node.html + ' ' + [...node.any, ...node.all, ...node.none]
    .map((why) => why.message).join('; ')).join(' | ');
axe.run(document, wish).then(
  (all) => done(all.violations.filter((it) => ['serious', 'critical'].includes(it.impact)).map(line)),
  (error) => done(['axe-core failed: ' + error]));
";

/// What a walk came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Walked {
    /// Pages, each as often as it was looked at.
    pub looks: usize,
    /// Those that axe-core has looked at.
    pub examined: usize,
}

/// Whether pictures are kept: what is only there to be too long is left out of them.
pub fn is_pictured() -> bool {
    std::env::var_os(PICTURES).is_some()
}

/// Looks at the pages `paths` of a server, each with a name.
///
/// # Panics
/// If one of them sticks out, speaks the wrong language, or has something in it that axe-core finds
/// serious.
#[track_caller]
pub fn walk(browser: &Browser, url: &str, paths: &[(&'static str, String)]) -> Walked {
    let kept = std::env::var_os(PICTURES).map(PathBuf::from);
    let axe = axe();
    if let Some(script) = axe {
        // The browser's own hand puts it in; a page's policy would not let it in otherwise.
        let wish = json!({ "source": script });
        browser.devtools("Page.addScriptToEvaluateOnNewDocument", wish);
    }
    let mut walked = Walked { looks: 0, examined: 0 };
    let mut serious: Vec<String> = Vec::new();
    for (language, width, scheme, is_close) in LOOKS {
        browser.speak(language);
        browser.resize(width, 900);
        browser.prefer(scheme);
        for (name, path) in paths {
            browser.go(&format!("{url}{path}"));
            let look = format!("{name}, {width}, {scheme}, {language}");
            let found = browser.run(SEEN, &[]);
            assert_eq!(found[1], json!(language), "{look}");
            assert_eq!(found[2], json!([]), "{look}: ids that are cut or broken in two");
            assert_eq!(found[3], json!(true), "{look}: the page's own link is out of sight");
            let wide = found[0].as_u64().unwrap_or(u64::MAX);
            assert!(wide <= u64::from(width), "{look}: it is {wide} wide");
            if let Some(kept) = kept.as_ref().filter(|_| is_close) {
                let short = &language[..2];
                browser.picture(&kept.join(format!("{name}-{width}-{scheme}-{short}.png")));
            }
            if is_close && axe.is_some() {
                let found = browser.run_until_told(SERIOUS);
                let lines = found.as_array().into_iter().flatten().filter_map(Value::as_str);
                serious.extend(lines.map(|line| format!("{look}: {line}")));
                walked.examined += 1;
            }
            walked.looks += 1;
        }
    }
    assert!(serious.is_empty(), "axe-core found:\n{}", serious.join("\n"));
    walked
}

/// The script of axe-core, where there is one.
///
/// # Panics
/// If it should be there and is not.
fn axe() -> Option<&'static str> {
    static SCRIPT: OnceLock<Option<String>> = OnceLock::new();
    let read = || {
        let path = std::env::var_os(AXE)?;
        let text = std::fs::read_to_string(&path);
        Some(text.unwrap_or_else(|error| panic!("{}: {error}", path.display())))
    };
    let script = SCRIPT.get_or_init(read).as_deref();
    if script.is_none() {
        println!("{AXE} is not set, so axe-core does not look: `cargo xtask axe` gets it");
    }
    script
}
