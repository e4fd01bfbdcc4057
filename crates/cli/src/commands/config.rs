//! `mainspring config`: what the file says, and what a server would go by.

use crate::config::layers::{self, Flags};
use crate::config::{Settings, show};
use crate::exit;
use crate::output::{Output, say, say_json};
use serde_json::json;

/// What to do with the configuration.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Report every problem; exit 2 if there is one
    Check(Flags),
    /// Print what `serve` with the same flags would go by
    Show(Flags),
}

pub(crate) fn run(verb: &Verb, output: Output) -> anyhow::Result<u8> {
    let flags = match verb {
        Verb::Check(flags) | Verb::Show(flags) => flags,
    };
    let settings = layers::resolve(Settings::standard(), flags, &layers::process_environment)?;
    match (verb, output) {
        (Verb::Show(_), Output::Table) => say(show::toml(&settings).trim_end()),
        (Verb::Show(_), Output::Json) => {
            let value: toml::Table = toml::from_str(&show::toml(&settings))?;
            say_json(&serde_json::to_value(value)?);
        }
        (Verb::Check(_), Output::Json) => {
            let (types, templates) = (settings.types.len(), settings.templates.len());
            say_json(&json!({
                "ok": true, "types": types, "templates": templates, "not_yet": settings.not_yet,
            }));
        }
        (Verb::Check(_), Output::Table) => {
            let (types, templates) = (settings.types.len(), settings.templates.len());
            say(&format!("the configuration is fine: {types} types, {templates} templates"));
            settings.not_yet.iter().for_each(|line| say(&format!("note: {line}")));
        }
    }
    Ok(exit::OK)
}
