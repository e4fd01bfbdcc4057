// What a handler sees of its job.

import { Repeat, pause, sleep } from "./call.js";
import { commitEffect, effect } from "./client.js";
import { EFFECT_TRIES_MAX, RESULT_BYTES_MAX } from "./limits.js";
import { Failure, MainspringError, Refused, Stopped } from "./errors.js";

/** Why a handler should stop. */
export const StopReason = Object.freeze({
  /** Somebody cancelled the job. */
  CANCELLED: "cancelled",
  /** The lease is no longer ours: the job may run elsewhere already. */
  LEASE_LOST: "lease_lost",
  /** The time of the attempt is over. */
  TIMED_OUT: "timed_out",
  /** The worker is shutting down and its grace is over. */
  DRAINING: "draining",
});

export class Context {
  #transport;
  #abort = new AbortController();
  #reason;
  #progress;

  constructor(job, transport) {
    this.job = job;
    this.#transport = transport;
  }

  get payload() {
    return this.job.payload;
  }

  /** Aborted when the handler should stop; hand it on to `fetch` and friends. */
  get signal() {
    return this.#abort.signal;
  }

  /** Why the handler should stop, once it should. */
  get stopReason() {
    return this.#reason;
  }

  /** Throws `Stopped` if the handler should stop. */
  check() {
    if (this.#reason !== undefined) throw new Stopped(this.#reason);
  }

  /** Tells how far the work is, in percent; sent with the next heartbeat. */
  progress(percent) {
    this.#progress = Number.isFinite(percent) ? Math.min(Math.max(percent, 0), 100) : undefined;
  }

  /** Does something once per job, however often the job is tried. */
  async step(name, work) {
    const { job_id: jobId, lease_token: token } = this.job;
    const known = await this.#patiently(effect(jobId, name, token, Repeat.NEVER));
    if (known !== undefined) return known.value;
    const value = (await work()) ?? null;
    let record;
    try {
      record = commitEffect(jobId, name, token, value, Repeat.NEVER);
    } catch (error) {
      throw Failure.permanent("EFFECT_INVALID", error.message);
    }
    const told = await this.#patiently(record);
    return told === undefined || told.is_first ? value : told.value;
  }

  /** Asks the ledger, a few times if it must be. Both of its questions can be repeated. */
  async #patiently(call) {
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.#transport.call(call);
      } catch (error) {
        if (!(error instanceof MainspringError)) throw error;
        if (call.method === undefined && error.code === "EFFECT_NOT_FOUND") return undefined;
        if (!error.isRetryable || tries >= EFFECT_TRIES_MAX) throw ledgerFailure(error);
        await sleep(pause(tries, error));
      }
    }
  }

  /** For the loop: the first reason stands; answers whether this was it. */
  _tellToStop(reason) {
    if (this.#reason !== undefined) return false;
    this.#reason = reason;
    this.#abort.abort(new Stopped(reason));
    return true;
  }

  /** For the loop. */
  get _progress() {
    return this.#progress;
  }
}

/** Only what the ledger refuses for itself is the handler's own fault. */
function ledgerFailure(error) {
  if (error instanceof Refused && !error.isRetryable && error.code !== "LEASE_LOST") {
    return Failure.permanent("EFFECT_REFUSED", error.message);
  }
  return new Failure("EFFECT_LEDGER_UNREACHABLE", error.message);
}

/** A handler's answer as the result of a job, as JSON text; nothing is no result. */
export function resultText(value) {
  if (value === undefined || value === null) return undefined;
  let text;
  try {
    text = JSON.stringify(value);
  } catch (error) {
    throw Failure.permanent("RESULT_INVALID", error.message);
  }
  if (text === undefined) throw Failure.permanent("RESULT_INVALID", `a ${typeof value} has no JSON`);
  if (Buffer.byteLength(text) > RESULT_BYTES_MAX) {
    throw Failure.permanent("RESULT_TOO_LARGE", "the result is over 1 MiB of JSON");
  }
  return text === "null" ? undefined : text;
}
