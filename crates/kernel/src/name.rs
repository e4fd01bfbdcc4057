//! Names chosen by people: tenants, users, types, queues, workers. Checked once when made, shared
//! by reference count ever after, because a million waiting jobs repeat the same few names.

use crate::limits::NAME_BYTES_MAX;
use crate::text;
use std::fmt;
use std::sync::Arc;

/// Text that cannot be a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadName {
    /// What is wrong with it.
    pub reason: &'static str,
}

impl fmt::Display for BadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason)
    }
}

impl std::error::Error for BadName {}

/// What the house itself puts before a name that was checked, at most: a tenant's queue.
const PREFIX_BYTES_MAX: usize = 16;

fn check(text: &str) -> Result<(), BadName> {
    if text.len() > NAME_BYTES_MAX {
        return Err(BadName { reason: "must be at most 200 bytes long" });
    }
    check_stored(text)
}

fn check_stored(text: &str) -> Result<(), BadName> {
    if text.is_empty() || text.trim() != text {
        return Err(BadName { reason: "must not be empty or start or end with a space" });
    }
    if text.len() > NAME_BYTES_MAX + PREFIX_BYTES_MAX {
        return Err(BadName { reason: "must be at most 200 bytes long" });
    }
    if text::has_control(text) {
        return Err(BadName { reason: text::NO_CONTROL });
    }
    Ok(())
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks and takes the text.
            ///
            /// # Errors
            /// If the text is empty, padded, longer than 200 bytes or has control characters.
            pub fn new(text: &str) -> Result<Self, BadName> {
                check(text)?;
                Ok(Self(Arc::from(text)))
            }

            /// Takes text that was checked when it was stored.
            pub fn stored(text: Arc<str>) -> Self {
                debug_assert!(check_stored(&text).is_ok(), "stored names were checked: {text:?}");
                Self(text)
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// The shared text.
            pub fn shared(&self) -> &Arc<str> {
                &self.0
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    };
}

name!(
    /// A tenant: the wall no data crosses.
    TenantId
);
name!(
    /// A person or service inside a tenant.
    UserId
);
name!(
    /// The kind of work, an entry of the type registry.
    JobType
);
name!(
    /// A queue: what workers pull from, and what can be paused.
    QueueName
);
name!(
    /// A worker process, named by itself. Never trusted as an identity: the lease token is.
    WorkerId
);
