// What a handler sees of its job.

import { Repeat, path, pause, sleep } from "./call.js";
import { commitEffect, effect } from "./client.js";
import { CHECKPOINT_BYTES_MAX, EFFECT_TRIES_MAX, RESULT_BYTES_MAX } from "./limits.js";
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
  #message;
  #workerId;

  constructor(job, transport, workerId = "worker") {
    this.job = job;
    this.#transport = transport;
    this.#workerId = workerId;
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

  /** Tells how far the work is, in percent and for people; sent with the next heartbeat. */
  progress(percent, message) {
    this.#progress = Number.isFinite(percent) ? Math.min(Math.max(percent, 0), 100) : undefined;
    if (message !== undefined) this.#message = message;
  }

  /**
   * Leaves a value for the next try, in place of what was left before; at most 64 KiB of JSON. It
   * is kept once this resolves; the next try has it as `ctx.job.checkpoint`.
   */
  async checkpoint(value) {
    const text = JSON.stringify(value);
    if (text === undefined || Buffer.byteLength(text) > CHECKPOINT_BYTES_MAX) {
      throw Failure.permanent("CHECKPOINT_INVALID", "it is no JSON, or over 64 KiB of it");
    }
    const { job_id, lease_token } = this.job;
    const progress = this.#said({ checkpoint: value });
    // What was promised is never shortened.
    const beat = { worker_id: this.#workerId, lease_ms: 1000, items: [{ job_id, lease_token, progress }] };
    const call = {
      method: "POST",
      path: path(["work", "heartbeat"]),
      body: JSON.stringify(beat),
      repeat: Repeat.NEVER,
    };
    const told = await this.#patiently(call);
    const [item] = told.items;
    if (item.cancelled) throw Failure.permanent("JOB_CANCELLED", "cancelled");
    if (item.lease_expires_at === undefined) throw new Failure("LEASE_LOST", "the checkpoint was not kept");
  }

  #said(more) {
    if (this.#message === undefined && more === undefined) return this.#progress;
    const said = { ...more };
    if (this.#progress !== undefined) said.percent = this.#progress;
    if (this.#message !== undefined) said.message = this.#message;
    return said;
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
    return this.#said();
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
