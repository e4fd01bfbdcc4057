//! `mainspring config`: what the file says, and what a server would go by.

use crate::config::layers::{self, Flags};
use crate::config::{Settings, show};
use crate::exit;
use crate::output::{Output, say, say_json};
use serde_json::json;
use std::path::PathBuf;

/// What to do with the configuration.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Report every problem of a file or of what `serve` would read; exit 2 if there is one
    Check(CheckArgs),
    /// Print what `serve` with the same flags would go by
    Show(Flags),
}

/// What to check.
#[derive(Debug, clap::Args)]
pub(crate) struct CheckArgs {
    /// Configuration file (TOML); the same as --config FILE
    #[arg(value_name = "FILE", conflicts_with = "config")]
    file: Option<PathBuf>,
    #[command(flatten)]
    flags: Flags,
}

pub(crate) fn run(verb: &Verb, output: Output) -> anyhow::Result<u8> {
    let flags = match verb {
        Verb::Check(CheckArgs { file: Some(file), flags }) => {
            Flags { config: Some(file.clone()), ..flags.clone() }
        }
        Verb::Check(CheckArgs { file: None, flags }) | Verb::Show(flags) => flags.clone(),
    };
    let settings = layers::resolve(Settings::standard(), &flags, &layers::process_environment)?;
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
