//! Parts that have to run for as long as the process does, and what happens when one dies: the
//! first death is remembered, the store and the engine say that they are broken, and whoever
//! composed the process is told at once, in order to end it with the reason. A part that died
//! silently would leave a server that is ready and does half of its work.

use futures_util::FutureExt;
use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

/// One for a whole process. Clones are the same.
#[derive(Clone)]
pub struct Fatal {
    inner: Arc<Inner>,
}

struct Inner {
    reason: OnceLock<String>,
    tell: Box<dyn Fn(&str) + Send + Sync>,
}

impl Fatal {
    /// `tell` is called once, by the thread on which it happened, with the reason.
    pub fn new(tell: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Fatal { inner: Arc::new(Inner { reason: OnceLock::new(), tell: Box::new(tell) }) }
    }

    /// Why the process cannot go on, if it cannot.
    pub fn reason(&self) -> Option<&str> {
        self.inner.reason.get().map(String::as_str)
    }

    /// The process cannot go on. Only the first reason counts: the others follow from it.
    pub fn strike(&self, reason: impl Into<String>) {
        if self.inner.reason.set(reason.into()).is_ok() {
            (self.inner.tell)(self.reason().unwrap_or_default());
        }
    }

    /// Runs the body of a thread. If it panics, that is fatal.
    pub fn guard(&self, part: &str, body: impl FnOnce()) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(body)) {
            self.strike(death_of(part, &*panic));
        }
    }

    /// A task that runs `part`. If it panics, that is fatal.
    pub async fn watch(self, part: &'static str, body: impl Future<Output = ()>) {
        if let Err(panic) = AssertUnwindSafe(body).catch_unwind().await {
            self.strike(death_of(part, &*panic));
        }
    }
}

impl Default for Fatal {
    /// Tells nobody; the reason can be asked for.
    fn default() -> Self {
        Fatal::new(|_| {})
    }
}

impl fmt::Debug for Fatal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fatal").field("reason", &self.inner.reason.get()).finish_non_exhaustive()
    }
}

/// What to say of a part that panicked.
fn death_of(part: &str, panic: &(dyn Any + Send)) -> String {
    format!("{part} died: {}", text_of(panic))
}

/// The words of a panic.
pub fn text_of(panic: &(dyn Any + Send)) -> &str {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => text,
        (None, Some(text)) => text,
        (None, None) => "a panic without words",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    fn listening() -> (Fatal, Arc<Mutex<Vec<String>>>) {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let tell = heard.clone();
        (Fatal::new(move |why| tell.lock().unwrap().push(why.to_owned())), heard)
    }

    #[test]
    fn a_panic_is_told_once_with_its_part_and_its_words() {
        let (fatal, heard) = listening();
        fatal.guard("the keeper", || {});
        fatal.clone().watch("the timers", async {}).now_or_never().unwrap();
        assert_eq!((fatal.reason(), heard.lock().unwrap().len()), (None, 0));
        fatal.guard("the keeper", || panic!("out of {}", "ideas"));
        fatal.clone().watch("the timers", async { panic!("later") }).now_or_never().unwrap();
        assert_eq!(*heard.lock().unwrap(), ["the keeper died: out of ideas"]);
        assert_eq!(fatal.reason(), Some("the keeper died: out of ideas"));
    }

    #[test]
    fn a_task_that_panics_is_told_as_well() {
        let (fatal, heard) = listening();
        fatal.watch("the timers", async { panic!("plain") }).now_or_never().unwrap();
        assert_eq!(*heard.lock().unwrap(), ["the timers died: plain"]);
    }
}
