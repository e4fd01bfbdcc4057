// One call: what is sent, whether it may be repeated, and how its answer is read.

import { ANSWER_WAIT, BACKOFF, BACKOFF_ASKED_MAX, BACKOFF_MAX, TRIES, URL_DEFAULT } from "./limits.js";
import { readFileSync } from "node:fs";
import { encrypted } from "./encrypted.js";
import { MainspringError, Refused, Unreachable, Unreadable } from "./errors.js";

/** Whether a call may be made twice. */
export const Repeat = Object.freeze({
  /** A second call changes nothing more. */
  SAFE: "safe",
  /** A second call could do it twice. */
  UNSAFE: "unsafe",
  /** The caller repeats by itself. */
  NEVER: "never",
});

/** Errors of the network from before anything was sent. */
const NOT_SENT = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", "UND_ERR_CONNECT_TIMEOUT",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE", "UNABLE_TO_GET_ISSUER_CERT_LOCALLY", "SELF_SIGNED_CERT_IN_CHAIN", "CERT_HAS_EXPIRED",
  "ERR_TLS_CERT_ALTNAME_INVALID"]);

/** Whom a client speaks to, and as whom. What is not said comes from the environment. */
export function settings({ url, token, traceId, caFile } = {}) {
  const address = url || process.env.MAINSPRING_URL || URL_DEFAULT;
  const tokenFile = process.env.MAINSPRING_TOKEN_FILE;
  const secret =
    token || process.env.MAINSPRING_TOKEN || (tokenFile && readFileSync(tokenFile, "utf8").trim());
  const authorities = caFile || process.env.MAINSPRING_CA_FILE;
  const trace = traceId || process.env.MAINSPRING_TRACE_ID;
  if (!/^https?:\/\/[^/]/.test(address) || !URL.canParse(address)) {
    throw new TypeError(`the server address "${address}" must start with http:// or https://`);
  }
  const headers = { accept: "application/json" };
  if (secret) headers.authorization = `Bearer ${secret}`;
  if (trace) headers["x-trace-id"] = trace;
  // Without authorities of its own, a client trusts whom the platform trusts.
  const send = authorities && /^https:/.test(address) ? encrypted(readFileSync(authorities)) : (...sent) => fetch(...sent);
  return { url: address.replace(/\/+$/, ""), headers, send };
}

/** A path below `/api/v1`, its parts written so that no name can leave its place. */
export function path(parts, query = {}) {
  const encoded = parts.map((part) => "/" + encode(part)).join("");
  const asked = [];
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined || value === null) continue;
    for (const one of Array.isArray(value) ? value : [value]) asked.push(`${name}=${encode(one)}`);
  }
  return `/api/v1${encoded}${asked.length > 0 ? "?" + asked.join("&") : ""}`;
}

function encode(part) {
  const text = encodeURIComponent(String(part).toWellFormed?.() ?? String(part));
  return text.replace(/[!'()*]/g, (c) => "%" + c.charCodeAt(0).toString(16).toUpperCase());
}

/** Sends calls to one server. */
export class Transport {
  constructor(settings) {
    this.settings = settings;
  }

  /** Makes a call and reads the `data` of its answer, repeating as the call allows. */
  async call(call) {
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.once(call);
      } catch (error) {
        if (!(error instanceof MainspringError) || tries >= TRIES || !mayRepeat(call, error)) throw error;
        await sleep(pause(tries, error));
      }
    }
  }

  async once(call) {
    const { url, headers, send } = this.settings;
    const { method = "GET", body, wait = 0, timeout = ANSWER_WAIT + wait } = call;
    const sent = { ...headers, ...call.headers };
    if (body !== undefined) sent["content-type"] = "application/json";
    let answer, text;
    try {
      const signal = AbortSignal.timeout(Math.ceil(timeout));
      answer = await send(url + call.path, { method, headers: sent, body, signal, redirect: "manual" });
      text = await answer.text();
    } catch (error) {
      throw new Unreachable(url, !NOT_SENT.has(error?.cause?.code), error);
    }
    return read(call, answer, text);
  }
}

function read(call, answer, text) {
  const name = `${call.method ?? "GET"} ${call.path}`;
  let whole;
  try {
    whole = JSON.parse(text);
  } catch (error) {
    throw new Unreadable(name, answer.status, error.message);
  }
  if (whole?.success === true && "data" in whole && answer.ok) return whole.data;
  if (whole?.success === false && typeof whole.error?.code === "string") {
    const asked = answer.headers.get("retry-after");
    const retryAfter = asked !== null && /^\d{1,8}$/.test(asked) ? Number(asked) * 1000 : undefined;
    throw new Refused(answer.status, whole.error, whole.meta?.request_id, retryAfter);
  }
  throw new Unreadable(name, answer.status, "neither data nor error");
}

function mayRepeat(call, error) {
  if (call.repeat === Repeat.UNSAFE) return error.isCertainlyUndone;
  return call.repeat !== Repeat.NEVER && error.isRetryable;
}

/** A wait that doubles with every try. */
export function backoff(tries) {
  return Math.min(BACKOFF * 2 ** Math.min(Math.max(tries - 1, 0), 16), BACKOFF_MAX);
}

/** How long to wait before the next try. */
export function pause(tries, error) {
  return Math.max(backoff(tries), Math.min(error?.retryAfter ?? 0, BACKOFF_ASKED_MAX));
}

export function sleep(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** The fields that are neither undefined nor null. */
export function filled(fields) {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== null));
}
