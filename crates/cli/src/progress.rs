//! How far long work has come: a bar on a terminal, nothing elsewhere. It is drawn on stderr, so
//! what a command prints stays what it is.

use crate::output::Output;
use indicatif::{ProgressBar, ProgressStyle};
use std::time::Duration;

/// How often what is drawn moves, whether or not anything has been done since.
const TICK: Duration = Duration::from_millis(200);

/// A bar, or nothing.
#[derive(Debug)]
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// Counts things; how many there will be may not be known.
    pub(crate) fn of_things(what: &'static str, all: Option<u64>, output: Output) -> Self {
        let template = match all {
            Some(_) => "{msg} [{bar:30}] {human_pos}/{human_len} {per_sec} eta {eta}",
            None => "{msg} {spinner} {human_pos} {per_sec} for {elapsed}",
        };
        Self::made(what, all, template, output)
    }

    /// Counts bytes.
    pub(crate) fn of_bytes(what: &'static str, output: Output) -> Self {
        let template = "{msg} [{bar:30}] {bytes}/{total_bytes} {bytes_per_sec} eta {eta}";
        Self::made(what, Some(0), template, output)
    }

    fn made(what: &'static str, all: Option<u64>, template: &str, output: Output) -> Self {
        if output == Output::Json {
            return Progress(ProgressBar::hidden());
        }
        let bar = all.map_or_else(ProgressBar::new_spinner, ProgressBar::new);
        let style = ProgressStyle::with_template(template);
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_message(what);
        bar.enable_steady_tick(TICK);
        Progress(bar)
    }

    /// So much is done.
    pub(crate) fn at(&self, done: u64, all: u64) {
        self.0.set_length(all);
        self.0.set_position(done);
    }

    /// Says something above the bar.
    pub(crate) fn say(&self, text: &str) {
        self.0.suspend(|| crate::output::say(text));
    }

    /// So much more is done.
    pub(crate) fn add(&self, count: u64) {
        self.0.inc(count);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
