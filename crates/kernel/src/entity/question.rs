//! Questions: a job has asked a person something and waits for the answer. A job has one question
//! at a time, of the same id as the job; asking again is the next version of it.
//!
//! Asking gives the job back, not due before there is an answer, in the same commit. An answer, or
//! the default at the deadline, makes it due; a deadline without a default ends it. The answer
//! stays here: whoever is handed the job is told.

use super::{Body, Entity, EntityCommand, EntityId, Kind};
use crate::command::Command;
use crate::decide::{self, Decision, Receipt};
use crate::event::Event;
use crate::facts::Facts;
use crate::fingerprint::digest;
use crate::governance::is_governed;
use crate::id::JobId;
use crate::job::{Actor, Failure, LeaseToken};
use crate::limits::{
    QUESTION_BYTES_MAX, QUESTION_KEEP_MS, QUESTION_MS_DEFAULT, QUESTION_MS_MAX,
    QUESTION_OPTIONS_MAX, QUESTIONS_PER_JOB_MAX,
};
use crate::name::UserId;
use crate::rejection::Rejection;
use crate::text;
use crate::time::Timestamp;
use std::fmt;

/// Code of a job that ended because nobody answered its question in time.
pub const QUESTION_EXPIRED: &str = "QUESTION_EXPIRED";

/// What a job asked a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The job that asks.
    pub job: JobId,
    /// The question.
    pub asked: Asked,
    /// How many questions the job has asked, this one included.
    pub count: u32,
    /// What became of it.
    pub standing: Standing,
    /// Whoever shows this may answer, once; whoever may steer the job needs nothing to show.
    pub secret: Option<u128>,
    /// When it is looked at whether anybody still needs it; known once nobody waits for an answer.
    pub kept_until: Option<Timestamp>,
}

/// What whoever answers a question has to show: which job, which of its questions, the secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResumeToken {
    /// Which job asked.
    pub job: JobId,
    /// Which of its questions.
    pub count: u32,
    /// What nobody can guess.
    pub secret: u128,
}

impl fmt::Display for ResumeToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rsm_{:032x}_{}_{:032x}", self.job.0, self.count, self.secret)
    }
}

impl std::str::FromStr for ResumeToken {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut parts = text.strip_prefix("rsm_").ok_or(())?.split('_');
        let (job, count, secret) = (parts.next(), parts.next(), parts.next());
        let (Some(job), Some(count), Some(secret), None) = (job, count, secret, parts.next())
        else {
            return Err(());
        };
        let bits = |text: &str| match text.len() {
            32 => u128::from_str_radix(text, 16).map_err(|_| ()),
            _ => Err(()),
        };
        let token = ResumeToken {
            job: JobId(bits(job)?),
            count: count.parse().map_err(|_| ())?,
            secret: bits(secret)?,
        };
        // There is one way to write it.
        if token.to_string() == text { Ok(token) } else { Err(()) }
    }
}

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The question.
    pub text: Box<str>,
    /// Answers to choose from; any will do if there are none.
    pub options: Vec<Box<str>>,
    /// The answer that counts if nobody gives one in time.
    pub default: Option<Box<str>>,
    /// Until when an answer is waited for; an hour if left open.
    pub deadline: Option<Timestamp>,
}

impl Asked {
    fn text_bytes(&self) -> usize {
        let options: usize = self.options.iter().map(|option| option.len()).sum();
        self.text.len() + options + self.default.as_ref().map_or(0, |default| default.len())
    }
}

/// What became of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It waits for an answer.
    Open,
    /// Somebody answered.
    Answered {
        /// So.
        answer: Box<str>,
        /// Who.
        by: UserId,
        /// When.
        at: Timestamp,
    },
    /// Nobody did in time, and the default counts.
    Defaulted {
        /// When.
        at: Timestamp,
    },
    /// Nobody did in time, and there is no default: the job has ended.
    Expired {
        /// When.
        at: Timestamp,
    },
    /// The job ended for another reason.
    Withdrawn {
        /// When that was noticed.
        at: Timestamp,
    },
}

impl Question {
    /// Every state, by name.
    pub const STATES: [&str; 5] = ["open", "answered", "defaulted", "expired", "withdrawn"];

    /// Where it stands.
    pub const fn state(&self) -> &'static str {
        match self.standing {
            Standing::Open => Self::STATES[0],
            Standing::Answered { .. } => Self::STATES[1],
            Standing::Defaulted { .. } => Self::STATES[2],
            Standing::Expired { .. } => Self::STATES[3],
            Standing::Withdrawn { .. } => Self::STATES[4],
        }
    }

    /// What has to be shown for an answer, while it waits for one.
    pub fn resume_token(&self) -> Option<ResumeToken> {
        let secret = self.secret.filter(|_| self.is_open())?;
        Some(ResumeToken { job: self.job, count: self.count, secret })
    }

    /// Whether it waits for an answer.
    pub const fn is_open(&self) -> bool {
        matches!(self.standing, Standing::Open)
    }

    /// The answer that counts, if there is one.
    pub fn answer(&self) -> Option<&str> {
        match &self.standing {
            Standing::Answered { answer, .. } => Some(answer),
            Standing::Defaulted { .. } => self.asked.default.as_deref(),
            Standing::Open | Standing::Expired { .. } | Standing::Withdrawn { .. } => None,
        }
    }

    pub(super) fn alarm_at(&self) -> Option<Timestamp> {
        if self.is_open() { self.asked.deadline } else { self.kept_until }
    }
}

/// The question of a job.
pub const fn of_job(job: JobId) -> EntityId {
    EntityId { kind: Kind::Question, bits: job.0 }
}

/// What can be asked of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuestionCommand {
    /// Ask it: the job is given back and waits.
    Ask {
        /// Which job asks.
        job: JobId,
        /// Under which lease; `None` if nobody holds the job.
        token: Option<LeaseToken>,
        /// Who reports it, if there is no lease.
        by: UserId,
        /// What.
        asked: Box<Asked>,
    },
    /// Answer it: the job is due.
    Answer {
        /// Which job asked.
        job: JobId,
        /// So.
        answer: Box<str>,
        /// Who.
        by: UserId,
        /// What they show for it, if they have to show something.
        shown: Option<ResumeToken>,
    },
}

impl QuestionCommand {
    pub(super) fn entity(&self) -> EntityId {
        of_job(self.job())
    }

    pub(super) fn job(&self) -> JobId {
        match self {
            QuestionCommand::Ask { job, .. } | QuestionCommand::Answer { job, .. } => *job,
        }
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            QuestionCommand::Ask { .. } => "ask_question",
            QuestionCommand::Answer { .. } => "answer_question",
        }
    }

    pub(super) fn text_bytes(&self) -> usize {
        match self {
            QuestionCommand::Ask { asked, .. } => asked.text_bytes(),
            QuestionCommand::Answer { answer, .. } => answer.len(),
        }
    }
}

impl From<QuestionCommand> for Command {
    fn from(command: QuestionCommand) -> Command {
        Command::Entity(Box::new(EntityCommand::Question(command)))
    }
}

pub(super) fn decide(command: &QuestionCommand, facts: &Facts<'_>) -> Result<Decision, Rejection> {
    match command {
        QuestionCommand::Ask { token, by, asked, .. } => ask(*token, by, asked, facts),
        QuestionCommand::Answer { answer, by, shown: None, .. } => give_answer(answer, by, facts),
        QuestionCommand::Answer { answer, by, shown: Some(shown), .. } => {
            resume(answer, by, *shown, facts)
        }
    }
}

fn ask(
    token: Option<LeaseToken>,
    by: &UserId,
    asked: &Asked,
    facts: &Facts<'_>,
) -> Result<Decision, Rejection> {
    // An unknown job and a foreign token get the same answer: a report reveals nothing.
    let job = facts.job.ok_or(Rejection::LeaseLost)?;
    // Its contract alone starts it and gives it back: the gates stand before that.
    if is_governed(&job.job_type) {
        return Err(Rejection::JobGoverned);
    }
    check(asked)?;
    let mut parts = vec![&b"ask"[..], asked.text.as_bytes()];
    parts.extend(asked.options.iter().map(|option| option.as_bytes()));
    parts.push(asked.default.as_deref().unwrap_or("").as_bytes());
    let said = digest(&parts);
    let mut events = decide::park(token, by, said, &format!("asked: {}", asked.text), facts)?;
    if events.is_empty() {
        return Ok(Decision { events, receipt: Receipt::Done });
    }
    let before = known(facts).ok();
    let count = before.map_or(0, |(_, before)| before.count) + 1;
    if count > QUESTIONS_PER_JOB_MAX {
        return Err(Rejection::QuestionConflict { state: "one too many" });
    }
    let latest = facts.now.plus_millis(QUESTION_MS_MAX);
    let deadline = asked.deadline.unwrap_or_else(|| facts.now.plus_millis(QUESTION_MS_DEFAULT));
    let asked = Asked { deadline: Some(deadline.min(latest)), ..asked.clone() };
    let secret = Some(facts.fresh_secret);
    let standing = Standing::Open;
    let kept_until = None;
    let question = Question { job: job.id, asked, count, standing, secret, kept_until };
    let body = Body::Question(Box::new(question));
    let entity = match before {
        Some((entity, _)) => entity.changed(body, facts.now),
        None => Entity {
            id: of_job(job.id),
            version: 1,
            tenant: job.tenant.clone(),
            owner: job.user.clone(),
            created_at: facts.now,
            updated_at: facts.now,
            body,
        },
    };
    events.push(Event::EntitySet(Box::new(entity)));
    Ok(Decision { events, receipt: Receipt::Done })
}

fn check(asked: &Asked) -> Result<(), Rejection> {
    let invalid = |field, reason| Err(Rejection::FieldInvalid { field, reason });
    if asked.text.trim().is_empty() {
        return invalid("question", "must not be blank");
    }
    if asked.text_bytes() > QUESTION_BYTES_MAX {
        return invalid("question", "must have at most 8192 bytes, with its options and default");
    }
    if asked.options.len() > QUESTION_OPTIONS_MAX {
        return invalid("options", "must have at most 50 entries");
    }
    if asked.options.iter().any(|option| option.trim().is_empty()) {
        return invalid("options", "must not be blank");
    }
    match &asked.default {
        Some(default) if !asked.options.is_empty() && !asked.options.contains(default) => {
            invalid("default", "must be one of the options")
        }
        Some(_) | None => Ok(()),
    }
}

fn give_answer(answer: &str, by: &UserId, facts: &Facts<'_>) -> Result<Decision, Rejection> {
    let (entity, question) = known(facts)?;
    let state = question.state();
    if let Standing::Answered { answer: given, by: who, .. } = &question.standing
        && **given == *answer
        && who == by
    {
        return Ok(Decision { events: Vec::new(), receipt: Receipt::Done });
    }
    let is_late = question.asked.deadline.is_some_and(|deadline| deadline <= facts.now);
    let job = facts.job.filter(|job| question.is_open() && !is_late && decide::is_parked(job));
    let Some(job) = job else { return Err(Rejection::QuestionConflict { state }) };
    let invalid = |reason| Err(Rejection::FieldInvalid { field: "answer", reason });
    if answer.trim().is_empty() || answer.len() > QUESTION_BYTES_MAX {
        return invalid("must be between 1 and 8192 bytes long");
    }
    let options = &question.asked.options;
    if !options.is_empty() && !options.iter().any(|option| **option == *answer) {
        return invalid("must be one of the options");
    }
    let answer = text::cleaned(answer).as_ref().into();
    let standing = Standing::Answered { answer, by: by.clone(), at: facts.now };
    let mut events = decide::hasten(job, Actor::User(by.clone()), facts);
    events.push(changed(entity, question, standing, facts));
    Ok(Decision { events, receipt: Receipt::Done })
}

/// An answer by whoever shows the token of the question. It counts once, whatever comes later.
fn resume(
    answer: &str,
    by: &UserId,
    shown: ResumeToken,
    facts: &Facts<'_>,
) -> Result<Decision, Rejection> {
    let token = known(facts).ok().and_then(|(_, question)| question.resume_token());
    if token != Some(shown) {
        return Err(Rejection::ResumeInvalid);
    }
    match give_answer(answer, by, facts) {
        Err(Rejection::QuestionConflict { .. }) => Err(Rejection::ResumeInvalid),
        told => told,
    }
}

/// The deadline has come: the default counts, or the job ends. How the job stands matters, so it is
/// asked for first.
pub(super) fn ring(entity: &Entity, question: &Question, facts: &Facts<'_>) -> Decision {
    let Some((_, job)) = facts.watched.iter().find(|(id, _)| *id == question.job) else {
        let receipt = Receipt::Wanting { jobs: vec![question.job] };
        return Decision { events: Vec::new(), receipt };
    };
    let at = facts.now;
    if !question.is_open() {
        // Whoever is handed the job is told the answer, for as long as it may be handed out.
        let is_needed = job.is_some_and(|job| !job.state.name().is_terminal());
        let event = match is_needed {
            true => changed(entity, question, question.standing.clone(), facts),
            false => Event::EntityRemoved { entity: entity.id, version: entity.version + 1 },
        };
        return Decision { events: vec![event], receipt: Receipt::Done };
    }
    let job = job.filter(|job| decide::is_parked(job));
    let (mut events, standing) = match (job, &question.asked.default) {
        (None, _) => (Vec::new(), Standing::Withdrawn { at }),
        (Some(job), Some(_)) => {
            (decide::hasten(job, Actor::Reaper, facts), Standing::Defaulted { at })
        }
        (Some(job), None) => {
            let failure = Failure {
                code: QUESTION_EXPIRED.into(),
                message: "nobody answered the question in time".into(),
                retryable: false,
            };
            (decide::give_up(job, failure, Actor::Reaper, facts), Standing::Expired { at })
        }
    };
    events.push(changed(entity, question, standing, facts));
    Decision { events, receipt: Receipt::Done }
}

fn changed(entity: &Entity, question: &Question, standing: Standing, facts: &Facts<'_>) -> Event {
    let kept_until = Some(facts.now.plus_millis(QUESTION_KEEP_MS));
    let body = Body::Question(Box::new(Question { standing, kept_until, ..question.clone() }));
    Event::EntitySet(Box::new(entity.changed(body, facts.now)))
}

fn known<'a>(facts: &Facts<'a>) -> Result<(&'a Entity, &'a Question), Rejection> {
    let unknown = Rejection::EntityUnknown { kind: Kind::Question };
    let entity = facts.entity.ok_or(unknown.clone())?;
    let Body::Question(question) = &entity.body else { return Err(unknown) };
    Ok((entity, question))
}
