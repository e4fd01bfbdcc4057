//! Names met while decoding, shared so that a million recovered jobs hold the same few texts.

use foldhash::fast::RandomState;
use mainspring_kernel::JobType;
use std::collections::HashSet;
use std::sync::Arc;

/// Longer codes are not shared: they are hardly codes, and a set of them would only grow.
const CODE_BYTES_SHARED_MAX: usize = 64;

type Texts = HashSet<Arc<str>, RandomState>;

/// Where decoding gets its shared texts from. Keep one for a whole recovery, then drop it.
#[derive(Debug, Default)]
pub struct Names {
    is_sharing: bool,
    /// Checked names of tenants, users, types, queues and workers.
    names: Texts,
    /// Failure codes; apart, because a code need not be a valid name.
    codes: Texts,
}

impl Names {
    /// Shares equal names from now on.
    pub fn shared() -> Self {
        Names { is_sharing: true, ..Names::default() }
    }

    /// Shares nothing: for decoding a single record.
    pub fn fresh() -> Self {
        Names::default()
    }

    /// How many names are shared.
    pub fn len(&self) -> usize {
        self.names.len() + self.codes.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The shared text of a name; `None` if the text cannot be a name.
    pub fn name(&mut self, text: &str) -> Option<Arc<str>> {
        if let Some(known) = self.names.get(text) {
            return Some(known.clone());
        }
        // All names obey one rule, so any of their types can check it.
        let name = JobType::new(text).ok()?.shared().clone();
        if self.is_sharing {
            self.names.insert(name.clone());
        }
        Some(name)
    }

    /// The shared text of a failure code, which may be any text.
    pub fn code(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.codes.get(text) {
            return known.clone();
        }
        let code: Arc<str> = text.into();
        if self.is_sharing && text.len() <= CODE_BYTES_SHARED_MAX {
            self.codes.insert(code.clone());
        }
        code
    }
}
