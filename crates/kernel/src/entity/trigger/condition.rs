//! Conditions: a tree of `and` and `or` over leaves that ask about files, tasks or an opinion.

use crate::limits::{
    NAME_BYTES_MAX, TRIGGER_DEPTH_MAX, TRIGGER_LEAVES_MAX, TRIGGER_NODES_MAX,
    TRIGGER_PATH_BYTES_MAX, TRIGGER_PROMPT_BYTES_MAX,
};
use crate::rejection::Rejection;
use crate::text::refuse_control;

/// What a conditional trigger waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// The newest of the files that match has changed since it was last fired for.
    FileChanged {
        /// A path with `*`, `**` and `?`.
        path: Box<str>,
        /// Whether files that are there from the beginning count as changed.
        fires_on_init: bool,
    },
    /// There is a file that matches.
    FileExists {
        /// A path with `*`, `**` and `?`.
        path: Box<str>,
    },
    /// The task has ended well, and was not fired for.
    TaskDone {
        /// The name of the run or plan, or the id of the job.
        task: Box<str>,
    },
    /// The task has ended badly, and was not fired for.
    TaskFailed {
        /// The name of the run or plan, or the id of the job.
        task: Box<str>,
    },
    /// A worker says so.
    LlmEval {
        /// The question.
        prompt: Box<str>,
    },
    /// All of them hold; so do none.
    And(Vec<Condition>),
    /// One of them holds; of none, none does.
    Or(Vec<Condition>),
}

impl Condition {
    /// The name on the wire.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Condition::FileChanged { .. } => "file_changed",
            Condition::FileExists { .. } => "file_exists",
            Condition::TaskDone { .. } => "task_done",
            Condition::TaskFailed { .. } => "task_failed",
            Condition::LlmEval { .. } => "llm_eval",
            Condition::And(_) => "and",
            Condition::Or(_) => "or",
        }
    }

    /// The leaves, in the order in which they are read.
    pub fn leaves(&self) -> Vec<&Condition> {
        let mut leaves = Vec::new();
        self.push_leaves(&mut leaves);
        leaves
    }

    fn push_leaves<'a>(&'a self, leaves: &mut Vec<&'a Condition>) {
        match self {
            Condition::And(parts) | Condition::Or(parts) => {
                parts.iter().for_each(|part| part.push_leaves(leaves));
            }
            Condition::FileChanged { .. }
            | Condition::FileExists { .. }
            | Condition::TaskDone { .. }
            | Condition::TaskFailed { .. }
            | Condition::LlmEval { .. } => leaves.push(self),
        }
    }

    /// The path of a leaf about files.
    pub fn path(&self) -> Option<&str> {
        match self {
            Condition::FileChanged { path, .. } | Condition::FileExists { path } => Some(path),
            Condition::TaskDone { .. }
            | Condition::TaskFailed { .. }
            | Condition::LlmEval { .. }
            | Condition::And(_)
            | Condition::Or(_) => None,
        }
    }

    /// The task of a leaf about tasks.
    pub fn task(&self) -> Option<&str> {
        match self {
            Condition::TaskDone { task } | Condition::TaskFailed { task } => Some(task),
            Condition::FileChanged { .. }
            | Condition::FileExists { .. }
            | Condition::LlmEval { .. }
            | Condition::And(_)
            | Condition::Or(_) => None,
        }
    }

    /// Refuses what could never be looked at.
    ///
    /// # Errors
    /// If it is too deep or too wide, or a leaf makes no sense.
    pub fn check(&self) -> Result<(), Rejection> {
        let (mut nodes, mut leaves) = (0, 0);
        // Not by recursion: how deep it is, is what has to be found out.
        let mut open = vec![(self, 1)];
        while let Some((part, depth)) = open.pop() {
            nodes += 1;
            if depth > TRIGGER_DEPTH_MAX {
                return Err(invalid("condition", "must be at most 8 deep"));
            }
            if nodes > TRIGGER_NODES_MAX {
                return Err(invalid("condition", "must have at most 64 parts"));
            }
            match part {
                Condition::And(parts) | Condition::Or(parts) => {
                    open.extend(parts.iter().take(TRIGGER_NODES_MAX + 1).map(|it| (it, depth + 1)));
                }
                Condition::FileChanged { path, .. } | Condition::FileExists { path } => {
                    leaves += 1;
                    check_path(path)?;
                }
                Condition::TaskDone { task } | Condition::TaskFailed { task } => {
                    leaves += 1;
                    if task.trim().is_empty() || task.len() > NAME_BYTES_MAX {
                        return Err(invalid("condition", "names a task of 1 to 200 bytes"));
                    }
                    refuse_control("condition", task)?;
                }
                Condition::LlmEval { prompt } => {
                    leaves += 1;
                    if prompt.trim().is_empty() || prompt.len() > TRIGGER_PROMPT_BYTES_MAX {
                        return Err(invalid("condition", "asks a question of 1 byte to 16 KiB"));
                    }
                }
            }
            if leaves > TRIGGER_LEAVES_MAX {
                return Err(invalid("condition", "must have at most 16 leaves"));
            }
        }
        Ok(())
    }
}

fn check_path(path: &str) -> Result<(), Rejection> {
    if path.is_empty() || path.len() > TRIGGER_PATH_BYTES_MAX {
        return Err(invalid("condition", "must have paths of 1 to 1024 bytes"));
    }
    refuse_control("condition", path)?;
    let mut parts = path.split('/').filter(|part| !part.is_empty());
    if parts.any(|part| part == ".." || part == ".") {
        return Err(invalid("condition", "must have paths without . and .. in them"));
    }
    if path.ends_with('/') || path.split('/').all(str::is_empty) {
        return Err(invalid("condition", "must have paths that name files"));
    }
    let is_stars = |part: &str| part.contains("**") && part != "**";
    if path.split('/').any(is_stars) || path.split('/').filter(|part| *part == "**").count() > 2 {
        let reason = "may have ** twice in a path, each as a part of its own";
        return Err(invalid("condition", reason));
    }
    Ok(())
}

fn invalid(field: &'static str, reason: &'static str) -> Rejection {
    Rejection::FieldInvalid { field, reason }
}
