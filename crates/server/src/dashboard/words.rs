//! Texts in two languages. A table has one line for each text with both, so that neither can lack
//! one; what is put into a text stands there as `{}`.

use super::cookies::{self, Name};
use hyper::HeaderMap;
use hyper::header::ACCEPT_LANGUAGE;
use mainspring_kernel::StateName;

/// A language of the dashboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lang {
    /// English.
    En,
    /// Simplified Chinese.
    Zh,
}

impl Lang {
    /// How HTML and cookies name it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Lang::En => "en",
            Lang::Zh => "zh-CN",
        }
    }

    /// The language of that name.
    pub(crate) fn parse(text: &str) -> Option<Lang> {
        [Lang::En, Lang::Zh].into_iter().find(|lang| lang.as_str() == text)
    }

    /// The one that a browser wants: as it was switched to, or as it says.
    pub(crate) fn of(headers: &HeaderMap) -> Lang {
        let switched = cookies::value(headers, Name::Language).and_then(|text| Lang::parse(&text));
        let said = || headers.get(ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok());
        switched.unwrap_or_else(|| said().map_or(Lang::En, wanted))
    }

    /// One of a pair of texts.
    pub(crate) const fn of_two(self, [en, zh]: [&'static str; 2]) -> &'static str {
        match self {
            Lang::En => en,
            Lang::Zh => zh,
        }
    }
}

/// The language of a header with preferences; of two that are wanted alike, the first.
fn wanted(header: &str) -> Lang {
    let weighed = header.split(',').filter_map(|part| {
        let (tag, weight) = part.split_once(';').unwrap_or((part, "q=1"));
        let weight: f32 = weight.trim().strip_prefix("q=")?.parse().ok()?;
        let lang = match tag.trim().get(..2)?.to_ascii_lowercase().as_str() {
            "en" => Lang::En,
            "zh" => Lang::Zh,
            _ => return None,
        };
        Some((lang, weight))
    });
    let best = weighed
        .filter(|(_, weight)| *weight > 0.0)
        .reduce(|best, next| if next.1 > best.1 { next } else { best });
    best.map_or(Lang::En, |(lang, _)| lang)
}

/// Puts `values` where a text has `{}`, in order.
pub(crate) fn fill(text: &str, values: &[&str]) -> String {
    let mut values = values.iter();
    let mut parts = text.split("{}");
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        filled.push_str(values.next().copied().unwrap_or_default());
        filled.push_str(part);
    }
    filled
}

/// A table of texts: `words! { Name { key: "English", "中文"; } }`.
macro_rules! words {
    ($name:ident { $($key:ident: $en:literal, $zh:literal;)* }) => {
        /// Texts of this page.
        pub(crate) struct $name { $(pub(crate) $key: &'static str,)* }

        impl $name {
            /// The texts in a language.
            pub(crate) const fn of(lang: $crate::dashboard::words::Lang) -> &'static Self {
                const EN: $name = $name { $($key: $en,)* };
                const ZH: $name = $name { $($key: $zh,)* };
                match lang {
                    $crate::dashboard::words::Lang::En => &EN,
                    $crate::dashboard::words::Lang::Zh => &ZH,
                }
            }

            /// Every text with its key, in both languages.
            #[cfg(test)]
            pub(crate) const ALL: &'static [(&'static str, &'static str, &'static str)] =
                &[$((stringify!($key), $en, $zh),)*];
        }
    };
}
pub(crate) use words;

words! {
    Shell {
        skip: "Skip to content", "跳到正文";
        navigation: "Pages", "页面";
        sign_out: "Sign out", "退出";
        signed_in_as: "Signed in as", "登录身份";
        language_other: "中文", "English";
        language_other_code: "zh-CN", "en";
        live: "live", "实时";
        paused: "paused", "已暂停";
        stale: "not connected", "未连接";
        api: "API reference", "API 参考";
        low_on_space: "The disk is almost full: new work is refused until there is room.", "磁盘将满：在腾出空间之前拒绝新的作业。";
        older: "Older", "更早";
        first_page: "Newest", "最新";
        reason: "Reason", "原因";
        copy: "Copy", "复制";
    }
}

/// What a state is called.
pub(crate) fn state(lang: Lang, state: StateName) -> &'static str {
    lang.of_two(match state {
        StateName::Queued => ["queued", "排队"],
        StateName::Running => ["running", "运行中"],
        StateName::Retrying => ["retrying", "待重试"],
        StateName::DlqPending => ["dlq pending", "转入死信"],
        StateName::DlqRecorded => ["dlq recorded", "已记死信"],
        StateName::Succeeded => ["succeeded", "成功"],
        StateName::Failed => ["failed", "失败"],
        StateName::Cancelled => ["cancelled", "已取消"],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    #[test]
    fn the_language_is_the_browsers_unless_it_was_switched() {
        for (header, lang) in [
            ("", Lang::En),
            ("de", Lang::En),
            ("zh", Lang::Zh),
            ("zh-CN,zh;q=0.9,en;q=0.8", Lang::Zh),
            ("en-GB,en;q=0.9,zh;q=0.8", Lang::En),
            ("fr;q=1,zh-TW;q=0.3,en;q=0.2", Lang::Zh),
            ("zh;q=0,en;q=0.1", Lang::En),
            ("é", Lang::En),
        ] {
            assert_eq!(wanted(header), lang, "{header}");
        }
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT_LANGUAGE, HeaderValue::from_static("zh"));
        headers.insert("cookie", HeaderValue::from_static("mainspring-language=en"));
        assert_eq!(Lang::of(&headers), Lang::En);
    }

    #[test]
    fn texts_are_filled_in_order() {
        assert_eq!(fill("{} of {}", &["1", "2"]), "1 of 2");
        assert_eq!(fill("no place", &["1"]), "no place");
        assert_eq!(fill("{}{}", &["{}"]), "{}");
    }
}
