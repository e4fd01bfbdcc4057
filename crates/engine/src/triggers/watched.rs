//! A trigger that goes by its condition, as the watcher knows it: how each leaf is looked at, and
//! what was last seen there.

use super::files::Files;
use super::tasks::{TaskName, Tasks};
use mainspring_kernel::entity::trigger::{Seen, Sight, Trigger};
use mainspring_kernel::{Timestamp, UserId};
use tokio::time::Instant;

/// How a leaf is looked at.
pub(super) enum Link {
    /// By paths; or nobody can, and why.
    Files(Result<Vec<u64>, &'static str>),
    /// By the end of a task.
    Task(TaskName),
    /// Not by us.
    Asked,
}

/// A trigger that goes by its condition.
pub(super) struct Watched {
    pub(super) version: u32,
    pub(super) made_at: Timestamp,
    pub(super) owner: UserId,
    pub(super) trigger: Box<Trigger>,
    pub(super) links: Vec<Link>,
    /// When it is to be judged because a file will have settled.
    pub(super) judge_at: Option<Instant>,
}

impl Watched {
    /// How the leaves of a trigger are looked at, in words.
    pub(super) fn ways(&self, files: &Files) -> Vec<String> {
        let way = |link: &Link| match link {
            Link::Files(Ok(paths)) => match paths.iter().find_map(|path| files.polled(*path)) {
                Some(why) => format!("polled: {why}"),
                None => "watched".to_owned(),
            },
            Link::Files(Err(why)) => format!("not looked at: it {why}"),
            Link::Task(_) => "told when the task ends".to_owned(),
            Link::Asked => "asked by a worker".to_owned(),
        };
        self.links.iter().map(way).collect()
    }

    /// What was last seen of the leaves of a trigger.
    pub(super) fn sights(&self, files: &Files, tasks: &Tasks) -> Vec<Sight> {
        let mut sights = Vec::new();
        for (link, leaf) in self.links.iter().zip(0u16..) {
            let seen = match link {
                Link::Files(Ok(paths)) => {
                    let newest = paths.iter().map(|path| files.seen(*path));
                    let Some(newest) = newest.collect::<Option<Vec<_>>>() else { continue };
                    Seen::Files(newest.into_iter().max().flatten())
                }
                Link::Task(name) => {
                    let sees_all = self.trigger.spec.sees_tenant;
                    let ended = tasks.known(name).filter(|it| sees_all || it.user == self.owner);
                    Seen::Task(ended.map(|it| Box::new(it.ended.clone())))
                }
                Link::Files(Err(_)) | Link::Asked => continue,
            };
            sights.push(Sight { leaf, seen });
        }
        sights
    }
}
