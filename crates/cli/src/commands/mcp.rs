//! `mainspring mcp`: the Model Context Protocol on stdin and stdout, so that an agent can look at a
//! server and, if it is told that it may, act on it. One JSON-RPC message per line; what the agent
//! may see and do is what the token may. The tools are in `mcp/tools.rs`.

mod tools;

use crate::exit;
use crate::session::Session;
use serde_json::{Value, json};
use std::io::{BufRead, Write};
use tools::Tool;

/// What the agent may do.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Also offer tools that change something; without it, everything is read only
    #[arg(long)]
    allow_writes: bool,
}

/// The versions of the protocol that are spoken, newest first.
const PROTOCOLS: [&str; 3] = ["2025-06-18", "2025-03-26", "2024-11-05"];
/// Longest message that is read.
const MESSAGE_BYTES_MAX: usize = 4 << 20;

const INSTRUCTIONS: &str = "Mainspring is a durable job scheduler. Start with get_runtime for the \
    numbers and list_alerts for what needs attention; explain_job says why a job is not running, \
    list_job_events what happened to it, and explain_error what a code means and what to do.";

/// The codes of JSON-RPC.
const PARSE_ERROR: i64 = -32_700;
const INVALID_REQUEST: i64 = -32_600;
const METHOD_NOT_FOUND: i64 = -32_601;
const INVALID_PARAMS: i64 = -32_602;

pub(crate) async fn run(args: Args, session: Session) -> anyhow::Result<u8> {
    // One message after the other: while one is waited for, there is nothing else to do.
    let mut input = std::io::stdin().lock();
    let mut output = std::io::stdout();
    let mut line = Vec::new();
    loop {
        line.clear();
        if read_line(&mut input, &mut line)? == 0 {
            return Ok(exit::OK);
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        if let Some(answer) = answer(&line, &session, args.allow_writes).await {
            let mut text = serde_json::to_vec(&answer)?;
            text.push(b'\n');
            output.write_all(&text)?;
            output.flush()?;
        }
    }
}

/// Reads up to the end of a line; of one that is too long, only as much as shows that it is.
fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> std::io::Result<usize> {
    let mut count = 0;
    loop {
        let bytes = input.fill_buf()?;
        if bytes.is_empty() {
            return Ok(count);
        }
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(bytes.len(), |end| end + 1);
        if line.len() <= MESSAGE_BYTES_MAX {
            line.extend_from_slice(&bytes[..taken]);
        }
        count += taken;
        input.consume(taken);
        if end.is_some() {
            return Ok(count);
        }
    }
}

/// The answer to a message; none to what asks for none.
async fn answer(line: &[u8], session: &Session, may_write: bool) -> Option<Value> {
    if line.len() > MESSAGE_BYTES_MAX {
        return Some(failed(&Value::Null, INVALID_REQUEST, "the message is too long"));
    }
    let message: Value = match serde_json::from_slice(line) {
        Ok(message) => message,
        Err(error) => return Some(failed(&Value::Null, PARSE_ERROR, &error.to_string())),
    };
    let id = message.get("id").cloned();
    let Some(method) = message["method"].as_str() else {
        // Answers are to nothing that was asked here.
        let is_answer = message.get("result").or(message.get("error")).is_some();
        let id = id.unwrap_or(Value::Null);
        return (!is_answer).then(|| failed(&id, INVALID_REQUEST, "there is no method"));
    };
    // What has no id is told, not asked.
    let id = id?;
    let params = &message["params"];
    Some(match method {
        "initialize" => done(&id, initialized(params)),
        "ping" => done(&id, json!({})),
        "tools/list" => {
            let tools: Vec<Value> =
                tools::offered(may_write).map(|tool| tool.described()).collect();
            done(&id, json!({ "tools": tools }))
        }
        "tools/call" => call(&id, params, session, may_write).await,
        other => failed(&id, METHOD_NOT_FOUND, &format!("there is no method {other:?}")),
    })
}

fn initialized(params: &Value) -> Value {
    let asked = params["protocolVersion"].as_str();
    let spoken = PROTOCOLS.into_iter().find(|known| asked == Some(known)).unwrap_or(PROTOCOLS[0]);
    json!({
        "protocolVersion": spoken,
        "capabilities": { "tools": { "listChanged": false } },
        "serverInfo": { "name": "mainspring", "version": env!("CARGO_PKG_VERSION") },
        "instructions": INSTRUCTIONS,
    })
}

async fn call(id: &Value, params: &Value, session: &Session, may_write: bool) -> Value {
    let name = params["name"].as_str().unwrap_or_default();
    let Some(tool) = tools::offered(may_write).find(|tool| tool.name == name) else {
        let hint = match tools::offered(true).any(|tool| tool.name == name) {
            true => "; it changes something, and mainspring mcp was started without --allow-writes",
            false => "",
        };
        return failed(id, INVALID_PARAMS, &format!("there is no tool {name:?}{hint}"));
    };
    let nothing = json!({});
    let arguments = params.get("arguments").filter(|it| !it.is_null()).unwrap_or(&nothing);
    let (text, is_error) = match use_tool(tool, arguments, session).await {
        Ok(text) => (text, false),
        Err(text) => (text, true),
    };
    done(id, json!({ "content": [{ "type": "text", "text": text }], "isError": is_error }))
}

/// What a tool says; what went wrong comes with its cure, because the agent can act on that.
async fn use_tool(tool: &Tool, arguments: &Value, session: &Session) -> Result<String, String> {
    let asked = tool.asked(arguments)?;
    let told = asked.send(&session.client).await.map_err(|error| {
        let error = anyhow::Error::new(error);
        let cure = exit::cure_of(&error).map(|cure| format!("\n{cure}")).unwrap_or_default();
        format!("{error}{cure}")
    })?;
    Ok(told)
}

fn done(id: &Value, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

fn failed(id: &Value, code: i64, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
}
