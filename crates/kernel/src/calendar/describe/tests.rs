//! What is said about rhythms.

use super::*;
use crate::time::Timestamp;

fn cron(text: &str, zone: &str) -> Rhythm {
    let (cron, zone) = (Cron::parse(text).unwrap(), Zone::parse(zone).unwrap());
    Rhythm::Cron { cron, zone, gap: Gap::Shift, fold: Fold::Once }
}

#[test]
fn patterns_are_told_in_two_languages() {
    for (pattern, english, chinese) in [
        ("0 3 * * *", "At 03:00 every day", "每天 03:00"),
        ("@hourly", "At minute 0 of every hour", "每小时第 0 分"),
        ("@yearly", "At 00:00 on day 1 of January", "1 月的 1 日 00:00"),
        ("* * * * *", "Every minute", "每分钟"),
        ("*/15 * * * *", "Every 15 minutes", "每 15 分钟"),
        (
            "*/7 * * * *",
            "At minutes 0, 7, 14, 21, 28, 35, 42, 49 and 56 of every hour",
            "每小时第 0、7、14、21、28、35、42、49、56 分",
        ),
        ("* * * * * *", "Every second", "每秒"),
        ("*/10 * * * * *", "Every 10 seconds", "每 10 秒"),
        ("5 * * * * *", "At second 5 of every minute", "每分钟第 5 秒"),
        ("30 15 4 * * *", "At 04:15:30 every day", "每天 04:15:30"),
        ("30 1,13 * * *", "At 01:30 and 13:30 every day", "每天 01:30、13:30"),
        (
            "*/15 9-17 * * 1-5",
            "Every 15 minutes of hours 9 to 17 on Monday to Friday",
            "每周一至周五 9 至 17 时内每 15 分钟",
        ),
        (
            "* 0-10/2 * 6 *",
            "Every minute of hours 0, 2, 4, 6, 8 and 10 every day in June",
            "6 月的每天 0、2、4、6、8、10 时的每分钟",
        ),
        (
            "0-29 * * * * 1",
            "At seconds 0 to 29 of every minute every Monday",
            "每周一 每分钟第 0 至 29 秒",
        ),
        (
            "* */20 3 * * *",
            "Every second of minutes 0, 20 and 40 of hour 3 every day",
            "每天 3 时第 0、20、40 分的每秒",
        ),
        ("0 0 * * 6,0", "At 00:00 every Saturday and Sunday", "每周六、周日 00:00"),
        ("0 0 1,15 * *", "At 00:00 on days 1 and 15 of every month", "每月 1 日、15 日 00:00"),
        ("0 0 1-5 * ?", "At 00:00 on days 1 to 5 of every month", "每月 1 日至 5 日 00:00"),
        ("0 0 L * *", "At 00:00 on the last day of every month", "每月最后一天 00:00"),
        (
            "0 0 L-3 2 *",
            "At 00:00 on the day 3 days before the last of February",
            "2 月的倒数第 4 天 00:00",
        ),
        (
            "0 0 LW * *",
            "At 00:00 on the last weekday (Monday to Friday) of every month",
            "每月最后一个工作日（周一至周五） 00:00",
        ),
        (
            "0 0 15W * *",
            "At 00:00 on the weekday (Monday to Friday) nearest to day 15 of every month",
            "每月离 15 日最近的工作日（周一至周五） 00:00",
        ),
        ("0 0 * * 2#2", "At 00:00 on the second Tuesday of every month", "每月第 2 个周二 00:00"),
        (
            "0 0 * 1-3 5L",
            "At 00:00 on the last Friday of January to March",
            "1 月至 3 月的最后一个周五 00:00",
        ),
        (
            "0 0 13 * 5",
            "At 00:00 on day 13 of the month, and also on Friday",
            "每月 13 日，以及周五 00:00",
        ),
        (
            "0 0 */10 * 1,2",
            "At 00:00 on days 1, 11, 21 and 31 of the month if that is Monday or Tuesday",
            "每月 1 日、11 日、21 日、31 日（须为周一或周二） 00:00",
        ),
        ("0 0 1-31 * 5", "At 00:00 every day", "每天 00:00"),
    ] {
        let rhythm = cron(pattern, "Asia/Shanghai");
        let told = rhythm.describe(Language::English);
        assert_eq!(told, format!("{english}, Asia/Shanghai"), "{pattern}");
        let told = rhythm.describe(Language::Chinese);
        assert_eq!(told, format!("{chinese}（Asia/Shanghai）"), "{pattern}");
    }
}

#[test]
fn what_happens_when_clocks_are_changed_is_told_unless_it_is_the_usual() {
    let told = |pattern: &str, zone: &str| {
        let Rhythm::Cron { cron, zone, .. } = cron(pattern, zone) else { unreachable!() };
        let unusual = Rhythm::Cron { cron, zone, gap: Gap::Skip, fold: Fold::Twice };
        (unusual.describe(Language::English), unusual.describe(Language::Chinese))
    };
    let (english, chinese) = told("30 2 * * *", "Europe/Berlin");
    assert_eq!(
        english,
        "At 02:30 every day, Europe/Berlin; left out when the clocks jump over it; \
         twice when the clocks show it twice"
    );
    assert_eq!(
        chinese,
        "每天 02:30（Europe/Berlin）；时钟跳过该时刻时不触发；时钟重复该时刻时触发两次"
    );
    assert_eq!(told("30 2 * * *", "UTC").0, "At 02:30 every day, UTC");
    assert_eq!(told("*/5 * * * *", "Europe/Berlin").0, "Every 5 minutes, Europe/Berlin");
}

#[test]
fn intervals_say_where_they_are_counted_from_when_it_matters() {
    for (every_secs, phase_secs, english, chinese) in [
        (60, 0, "Every minute", "每 1 分钟"),
        (300, 0, "Every 5 minutes", "每 5 分钟"),
        (3600, 0, "Every hour", "每 1 小时"),
        (
            300,
            330,
            "Every 5 minutes, counted from 1970-01-01T00:00:30Z",
            "每 5 分钟，自 1970-01-01T00:00:30Z 起算",
        ),
        (
            93_784,
            0,
            "Every 1 day 2 hours 3 minutes 4 seconds, counted from 1970-01-01T00:00:00Z",
            "每 1 天 2 小时 3 分钟 4 秒，自 1970-01-01T00:00:00Z 起算",
        ),
    ] {
        let rhythm = Rhythm::Interval { every_secs, phase_secs };
        assert_eq!(rhythm.describe(Language::English), english);
        assert_eq!(rhythm.describe(Language::Chinese), chinese);
    }
    for extreme in [(0, 0), (u64::MAX, u64::MAX), (u64::MAX, 5), (0, u64::MAX)] {
        let rhythm = Rhythm::Interval { every_secs: extreme.0, phase_secs: extreme.1 };
        assert!(!rhythm.describe(Language::English).is_empty());
    }
}

#[test]
fn an_instant_is_told_as_it_is() {
    let at = Rhythm::At(Timestamp(1_500_000));
    assert_eq!(at.describe(Language::English), "Once, at 1970-01-01T00:00:01.5Z");
    assert_eq!(at.describe(Language::Chinese), "一次，1970-01-01T00:00:01.5Z");
    assert!(!Rhythm::At(Timestamp::MAX).describe(Language::English).is_empty());
}
