//! How jobs of a type are executed: by workers that pull them, or by the server itself, which hands
//! each to a handler in its process, to a command, or to somebody's URL. Only what may be asked for
//! is decided here; who does it is the crate `executor`.

use crate::limits::{
    EXECUTOR_ANSWER_MS_DEFAULT, EXECUTOR_ARGS_MAX, EXECUTOR_BYTES_MAX, EXECUTOR_KILL_MS_DEFAULT,
    EXECUTOR_KILL_MS_MAX, EXECUTOR_URL_BYTES_MAX, EXECUTOR_VARIABLES_MAX, TIMEOUT_MS_MAX,
};
use crate::rejection::Rejection;
use crate::text::{NO_CONTROL, has_control};

/// The ways in which jobs can be executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// Workers ask for them; nothing runs in the server.
    Pull,
    /// A handler in the same process.
    InProcess,
    /// A command per job.
    Process,
    /// A signed request per job.
    Webhook,
}

impl Mode {
    /// Every mode; the first holds where nothing is said.
    pub const ALL: [Self; 4] = [Self::Pull, Self::InProcess, Self::Process, Self::Webhook];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Mode::Pull => "pull",
            Mode::InProcess => "inprocess",
            Mode::Process => "process",
            Mode::Webhook => "webhook",
        }
    }

    /// The mode of that name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == text)
    }
}

/// How jobs are executed, with all that it takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Executor {
    /// By workers that ask for them.
    Pull,
    /// By a handler in the same process.
    InProcess,
    /// By a command per job.
    Process(Process),
    /// By a signed request per job.
    Webhook(Webhook),
}

/// A command per job. The payload is its input, what it prints is the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// The program; the script, if there is a shell.
    pub command: Box<str>,
    /// Its arguments.
    pub args: Vec<Box<str>>,
    /// Where it runs; where the server does, if not said.
    pub cwd: Option<Box<str>>,
    /// Variables it gets besides those of its job: `NAME` as the server has it, or `NAME=value`.
    pub env: Vec<Box<str>>,
    /// Whether a shell reads the command.
    pub is_shell: bool,
    /// How long it has between being told to end and being ended.
    pub kill_grace_ms: u32,
}

/// A signed request per job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    /// Where it goes.
    pub url: Box<str>,
    /// How long the answer may take.
    pub timeout_ms: u32,
}

/// The program that reads a command if it is to be read by a shell.
pub const SHELL: &str = "/bin/sh";

/// An executor as it is asked for: a mode, and whatever was said beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutorWish {
    /// How.
    pub mode: Mode,
    /// Of a process: the program.
    pub command: Option<String>,
    /// Of a process: its arguments.
    pub args: Option<Vec<String>>,
    /// Of a process: where it runs.
    pub cwd: Option<String>,
    /// Of a process: its variables.
    pub env: Option<Vec<String>>,
    /// Of a process: whether a shell reads the command.
    pub shell: Option<bool>,
    /// Of a process: from SIGTERM to SIGKILL.
    pub kill_grace_ms: Option<u32>,
    /// Of a webhook: where it goes.
    pub url: Option<String>,
    /// Of a webhook: how long the answer may take.
    pub timeout_ms: Option<u32>,
}

impl ExecutorWish {
    /// A mode, and nothing beside it.
    pub const fn plain(mode: Mode) -> Self {
        ExecutorWish {
            mode,
            command: None,
            args: None,
            cwd: None,
            env: None,
            shell: None,
            kill_grace_ms: None,
            url: None,
            timeout_ms: None,
        }
    }

    /// Without what belongs to another mode: a deployment may say how each of them would go, and
    /// choose one.
    #[must_use]
    pub fn chosen(self) -> Self {
        let plain = ExecutorWish::plain(self.mode);
        match self.mode {
            Mode::Pull | Mode::InProcess => plain,
            Mode::Process => ExecutorWish { url: None, timeout_ms: None, ..self },
            Mode::Webhook => ExecutorWish { url: self.url, timeout_ms: self.timeout_ms, ..plain },
        }
    }

    /// The executor that is asked for.
    ///
    /// # Errors
    /// If something is missing, out of bounds, or belongs to another mode.
    pub fn made(self) -> Result<Executor, Rejection> {
        if self != self.clone().chosen() {
            return Err(bad("executor", "has a field that belongs to another mode"));
        }
        let boxed = |texts: Option<Vec<String>>| {
            texts.unwrap_or_default().into_iter().map(String::into_boxed_str).collect()
        };
        let made = match self.mode {
            Mode::Pull => Executor::Pull,
            Mode::InProcess => Executor::InProcess,
            Mode::Process => Executor::Process(Process {
                command: self.command.ok_or(bad(COMMAND, "is needed by a process"))?.into(),
                args: boxed(self.args),
                cwd: self.cwd.map(String::into_boxed_str),
                env: boxed(self.env),
                is_shell: self.shell.unwrap_or(false),
                kill_grace_ms: self.kill_grace_ms.unwrap_or(EXECUTOR_KILL_MS_DEFAULT),
            }),
            Mode::Webhook => Executor::Webhook(Webhook {
                url: self.url.ok_or(bad(URL, "is needed by a webhook"))?.into(),
                timeout_ms: self.timeout_ms.unwrap_or(EXECUTOR_ANSWER_MS_DEFAULT),
            }),
        };
        made.check()?;
        Ok(made)
    }
}

const COMMAND: &str = "executor.command";
const ARGS: &str = "executor.args";
const CWD: &str = "executor.cwd";
const ENV: &str = "executor.env";
const URL: &str = "executor.url";

impl Executor {
    /// Which way it is.
    pub const fn mode(&self) -> Mode {
        match self {
            Executor::Pull => Mode::Pull,
            Executor::InProcess => Mode::InProcess,
            Executor::Process(_) => Mode::Process,
            Executor::Webhook(_) => Mode::Webhook,
        }
    }

    /// Whether it may be kept.
    ///
    /// # Errors
    /// If something is out of bounds.
    pub fn check(&self) -> Result<(), Rejection> {
        match self {
            Executor::Pull | Executor::InProcess => Ok(()),
            Executor::Process(process) => process.check(),
            Executor::Webhook(webhook) => webhook.check(),
        }
    }
}

/// Which commands a server may start. Whoever may change types has the types, not the machine: they
/// choose among programs that whoever runs the server has named.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Startable {
    /// Programs that may be started with any arguments. A shell among them may do anything.
    pub programs: Vec<String>,
    /// Commands that may be started exactly as they are.
    pub commands: Vec<Process>,
}

impl Startable {
    /// Whether this command may be started.
    pub fn allows(&self, process: &Process) -> bool {
        self.programs.iter().any(|program| **program == *process.program())
            || self.commands.contains(process)
    }
}

impl Process {
    /// The program that is started.
    pub fn program(&self) -> &str {
        if self.is_shell { SHELL } else { &self.command }
    }

    fn check(&self) -> Result<(), Rejection> {
        let Process { command, args, cwd, env, is_shell, kill_grace_ms } = self;
        if command.is_empty() {
            return Err(bad(COMMAND, "must not be empty"));
        }
        if args.len() > EXECUTOR_ARGS_MAX {
            return Err(bad(ARGS, "must be at most 100"));
        }
        if env.len() > EXECUTOR_VARIABLES_MAX {
            return Err(bad(ENV, "must be at most 100"));
        }
        let texts = args.iter().chain(env).chain(cwd).chain([command]);
        if texts.map(|text| text.len() + 1).sum::<usize>() > EXECUTOR_BYTES_MAX {
            return Err(bad(COMMAND, "and what goes with it must be at most 16384 bytes"));
        }
        // A script has lines; nothing has a NUL, which no program could be given.
        let is_text = |text: &str| match is_shell {
            true => !text.contains('\0'),
            false => !has_control(text),
        };
        if !is_text(command) {
            return Err(bad(COMMAND, NO_CONTROL));
        }
        if args.iter().any(|text| text.contains('\0')) {
            return Err(bad(ARGS, "must not contain NUL"));
        }
        if cwd.as_ref().is_some_and(|cwd| !cwd.starts_with('/') || has_control(cwd)) {
            return Err(bad(CWD, "must be an absolute path without control characters"));
        }
        if *kill_grace_ms > EXECUTOR_KILL_MS_MAX {
            return Err(bad("executor.kill_grace_ms", "must be at most 60000"));
        }
        env.iter().try_for_each(|variable| check_variable(variable))
    }
}

/// Variables that hold secrets of the server itself, besides its own.
const SECRETS: [&str; 4] = ["DATABASE_URL", "PGPASSWORD", "PGPASSFILE", "PGSERVICEFILE"];

/// Whether a variable is the server's own business, and nothing for what it starts.
pub fn is_own_variable(name: &str) -> bool {
    name.starts_with("MAINSPRING_") || SECRETS.contains(&name)
}

fn check_variable(variable: &str) -> Result<(), Rejection> {
    let name = variable.split_once('=').map_or(variable, |(name, _)| name);
    let is_name = !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && !name.starts_with(|first: char| first.is_ascii_digit());
    if !is_name {
        return Err(bad(ENV, "must be names of variables, or NAME=value"));
    }
    if variable.contains('\0') {
        return Err(bad(ENV, "must not contain NUL"));
    }
    if is_own_variable(name) {
        return Err(bad(ENV, "must not name variables that hold the server's own secrets"));
    }
    Ok(())
}

impl Webhook {
    fn check(&self) -> Result<(), Rejection> {
        let Webhook { url, timeout_ms } = self;
        check_url(URL, url)?;
        if !(1..=TIMEOUT_MS_MAX).contains(timeout_ms) {
            return Err(bad("executor.timeout_ms", "must be between 1 and 604800000"));
        }
        Ok(())
    }
}

/// Refuses a URL that nobody can be called at, as the value of `field`.
pub fn check_url(field: &'static str, url: &str) -> Result<(), Rejection> {
    if url.len() > EXECUTOR_URL_BYTES_MAX {
        return Err(bad(field, "must be at most 2048 bytes long"));
    }
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let Some(rest) = rest else {
        return Err(bad(field, "must start with https:// or http://"));
    };
    let host = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    if host.is_empty() || host.contains('@') {
        return Err(bad(field, "must name a host, and nobody at it"));
    }
    match url.contains(' ') || has_control(url) {
        true => Err(bad(field, "must not contain spaces or control characters")),
        false => Ok(()),
    }
}

const fn bad(field: &'static str, reason: &'static str) -> Rejection {
    Rejection::FieldInvalid { field, reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(change: impl FnOnce(&mut ExecutorWish)) -> Result<Executor, Rejection> {
        let mut wish = ExecutorWish::plain(Mode::Process);
        wish.command = Some("/bin/true".into());
        change(&mut wish);
        wish.made()
    }

    fn webhook(url: &str) -> Result<Executor, Rejection> {
        let wish = ExecutorWish::plain(Mode::Webhook);
        ExecutorWish { url: Some(url.into()), ..wish }.made()
    }

    #[test]
    fn names_of_modes_can_be_read_again() {
        for mode in Mode::ALL {
            assert_eq!(Mode::parse(mode.as_str()), Some(mode));
        }
        assert_eq!(Mode::parse("celery-adapter"), None);
    }

    #[test]
    fn a_process_keeps_its_bounds() {
        assert!(process(|_| {}).is_ok());
        type Spoil = fn(&mut ExecutorWish);
        let bad: [(&str, Spoil); 13] = [
            ("no command", |it| it.command = None),
            ("an empty one", |it| it.command = Some(String::new())),
            ("a NUL", |it| it.command = Some("a\0b".into())),
            ("two lines without a shell", |it| it.command = Some("a\nb".into())),
            ("many arguments", |it| it.args = Some(vec!["a".into(); 101])),
            ("a long one", |it| it.args = Some(vec!["a".repeat(16_384)])),
            ("a NUL in one", |it| it.args = Some(vec!["a\0".into()])),
            ("a relative place", |it| it.cwd = Some("etc".into())),
            ("many variables", |it| it.env = Some(vec!["A".into(); 101])),
            ("one without a name", |it| it.env = Some(vec!["=x".into()])),
            ("a secret", |it| it.env = Some(vec!["MAINSPRING_ADMIN_TOKEN".into()])),
            ("another one", |it| it.env = Some(vec!["DATABASE_URL=mine".into()])),
            ("a URL", |it| it.url = Some("https://a.example".into())),
        ];
        for (what, change) in bad {
            assert!(process(change).is_err(), "{what}");
        }
        assert!(process(|it| (it.command, it.shell) = (Some("a\nb".into()), Some(true))).is_ok());
        assert!(process(|it| it.env = Some(vec!["A=b=c".into(), "_B9".into()])).is_ok());
    }

    #[test]
    fn what_may_be_started_is_the_program_itself() {
        let command = |shell: bool| {
            let made = process(|it| it.shell = Some(shell)).unwrap();
            let Executor::Process(process) = made else { panic!("a process") };
            process
        };
        let among = |shell: bool, programs: &[&str]| {
            let programs = programs.iter().map(|it| (*it).to_owned()).collect();
            Startable { programs, commands: Vec::new() }.allows(&command(shell))
        };
        assert!(among(false, &["/bin/true"]));
        assert!(!among(false, &["/bin/tru", "true", "/bin/sh"]));
        assert!(!among(true, &["/bin/true"]), "a shell can start anything");
        assert!(among(true, &[SHELL]));
        let exactly = Startable { programs: Vec::new(), commands: vec![command(true)] };
        assert!(exactly.allows(&command(true)) && !exactly.allows(&command(false)));
        let other = Process { args: vec!["x".into()], ..command(true) };
        assert!(!exactly.allows(&other), "that is another command");
    }

    #[test]
    fn a_webhook_goes_to_a_host() {
        for good in ["https://a.example/hook?x=1", "http://127.0.0.1:8080", "http://[::1]/"] {
            assert!(webhook(good).is_ok(), "{good}");
        }
        for bad in [
            "ftp://a.example",
            "a.example",
            "https://",
            "https:///x",
            "https://me:secret@a.example/",
            "https://a.example/ b",
            "https://a.example/\r\nhost: b",
        ] {
            assert!(webhook(bad).is_err(), "{bad}");
        }
        assert!(webhook(&format!("https://a.example/{}", "x".repeat(2048))).is_err());
    }

    #[test]
    fn a_deployment_may_say_how_each_mode_would_go() {
        let mut both = ExecutorWish::plain(Mode::Process);
        (both.command, both.url) = (Some("x".into()), Some("https://a.example".into()));
        assert!(both.clone().made().is_err());
        assert!(both.clone().chosen().made().is_ok());
        both.mode = Mode::Webhook;
        assert!(both.clone().chosen().made().is_ok());
        both.mode = Mode::Pull;
        assert_eq!(both.chosen().made(), Ok(Executor::Pull));
    }
}
