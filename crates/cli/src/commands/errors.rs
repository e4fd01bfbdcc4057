//! `mainspring errors`: what a code means, why it comes and what to do, without a browser.

use crate::exit::{self, usage};
use crate::output::{Output, say, say_json, table, width, wrapped};
use crate::pages;
use serde_json::json;

/// Which code.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The code, as LEASE_LOST; all of them with their cures if left out
    code: Option<String>,
}

pub(crate) fn run(args: &Args, output: Output) -> anyhow::Result<u8> {
    let Some(code) = &args.code else {
        let list = pages::codes().map(|code| (code, pages::cure(code).unwrap_or_default()));
        match output {
            Output::Json => {
                let list = list.map(|(code, cure)| json!({ "code": code, "cure": cure }));
                say_json(&list.collect());
            }
            Output::Table => {
                say(&table(
                    &["code", "cure"],
                    list.map(|(code, cure)| vec![code.to_owned(), cure]),
                ));
            }
        }
        return Ok(exit::OK);
    };
    let code = code.to_ascii_uppercase();
    let Some(page) = pages::page(&code) else {
        let known: Vec<&str> = pages::codes().collect();
        let hint = crate::config::suggest::hint(&code, &known);
        return Err(usage(format!("there is no code {code}{hint}")));
    };
    match output {
        Output::Json => say_json(&json!({
            "code": code, "cure": pages::cure(&code), "page": page,
        })),
        Output::Table => say(&wrapped(page.trim_end(), width(), 0)),
    }
    Ok(exit::OK)
}
