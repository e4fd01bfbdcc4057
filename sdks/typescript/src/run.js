// The loop that owns everything a worker knows. Calls and handlers run beside it and come back as
// values. The same loop as in Rust. Node has one thread: a handler that blocks it keeps heartbeats
// from going out, too, so heavy computing belongs into a worker thread or another process.

import { Repeat, backoff, path, pause, sleep } from "./call.js";
import { Context, StopReason, resultText } from "./context.js";
import { CODE_DEFAULT, Failure, MainspringError, Release } from "./errors.js";
import { complete, fail, isAbout, release, tell } from "./report.js";
import {
  BEAT_AGAIN_MAX,
  BEAT_ITEMS_MAX,
  BEAT_PARTS_MAX,
  BEAT_WAIT_MAX,
  LAST_POLL_MAX,
  REPORTS_OUT_MAX,
  REPORT_BYTES_MAX,
  REPORT_FRESH,
  REST_MAX,
  TIMER_MAX,
} from "./limits.js";

const SHUTTING_DOWN = "the worker is shutting down";
const now = () => performance.now();

export class Run {
  /** By lease token: jobs that run, or are finished and not yet reported. */
  held = new Map();
  /** Handlers that have not ended, the dropped ones included; and those that were not dropped. */
  busy = 0;
  running = 0;
  ready = [];
  /** Slots kept for jobs that calls on the way may bring. */
  reserved = 0;
  isPolling = false;
  beatsOut = 0;
  beatItems = BEAT_ITEMS_MAX;
  hasBeatFailed = false;
  reportsOut = 0;
  reportedAt = now();
  failedPolls = 0;
  idlePolls = 0;
  wishNotBefore = now();
  leasesEnd = Infinity;
  drainEnds = undefined;
  pollEnds = undefined;
  giveUp = Infinity;
  fatal = undefined;
  summary = { completed: 0, failed: 0, released: 0, lost: 0, refused: 0 };

  constructor(setup, transport, log) {
    this.setup = setup;
    this.transport = transport;
    this.log = log;
    this.types = [...setup.handlers.keys()].sort();
    this.nextBeat = now() + setup.leaseMs / 3;
  }

  async until() {
    for (;;) {
      this.#sendReports();
      this.#poll();
      if (this.#isFinished()) break;
      await this.#wait(this.#nextWake() - now());
      this.#onTime();
    }
    // Whatever is still held was given up: nobody said that its report was taken.
    this.summary.refused += this.held.size;
    for (const held of this.held.values()) held.disarm();
    if (this.fatal !== undefined) throw this.fatal;
    return this.summary;
  }

  /** Waits until something happened, or the time is over. */
  #wait(ms) {
    if (this.isAwake) {
      this.isAwake = false;
      return undefined;
    }
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.wake(), Math.min(Math.max(ms, 0), TIMER_MAX));
      this.wake = () => {
        clearTimeout(timer);
        this.wake = this.#noteWake;
        resolve();
      };
    });
  }

  isAwake = false;
  #noteWake = () => {
    this.isAwake = true;
  };
  wake = this.#noteWake;

  /** Has something run beside the loop; whatever it does, the loop looks again afterwards. */
  #spawn(call) {
    call
      .catch((error) => {
        // Everything expected was dealt with where it happened.
        this.fatal ??= error;
        this.drain();
      })
      .finally(() => this.wake());
  }

  #isFinished() {
    if (this.giveUp <= now()) return true;
    // A poll on its way may hold jobs; nobody else would give them back.
    const isPollOver = !this.isPolling || (this.pollEnds !== undefined && this.pollEnds <= now());
    return (
      this.drainEnds !== undefined &&
      isPollOver &&
      this.held.size === 0 &&
      this.ready.length === 0 &&
      this.reportsOut === 0
    );
  }

  /** How many more jobs may be asked for now. */
  #room() {
    if (this.drainEnds !== undefined || now() < this.wishNotBefore) return 0;
    return Math.max(this.setup.concurrency - this.busy - this.reserved, 0);
  }

  #nextWake() {
    const at = now();
    const ends = [this.nextBeat, this.leasesEnd, this.giveUp];
    if (this.isPolling && this.pollEnds > at) ends.push(this.pollEnds);
    if (!this.isPolling && this.drainEnds === undefined) {
      ends.push(...[this.wishNotBefore, this.reportedAt + REPORT_FRESH].filter((end) => end > at));
    }
    if (this.drainEnds > at && this.running > 0) ends.push(this.drainEnds);
    return Math.min(...ends);
  }

  #onTime() {
    const at = now();
    if (this.drainEnds <= at) this.#tellAllToDrain();
    if (this.leasesEnd <= at) {
      for (const held of this.held.values()) {
        // Nobody renewed it: by now the job may be somebody else's.
        if (held.endsAt <= at) this.#tellToStop(held, StopReason.LEASE_LOST);
      }
      const untold = [...this.held.values()].filter((held) => held.ctx.stopReason === undefined);
      this.leasesEnd = untold.reduce((end, held) => Math.min(end, held.endsAt), Infinity);
    }
    if (at >= this.nextBeat) {
      this.nextBeat = at + this.setup.leaseMs / 3;
      this.#beat(at);
    }
  }

  drain() {
    if (this.drainEnds !== undefined) return;
    const { drainGraceMs, stopGraceMs, leaseMs } = this.setup;
    this.drainEnds = now() + drainGraceMs;
    this.giveUp = this.drainEnds + stopGraceMs + leaseMs;
    if (this.isPolling) {
      this.pollEnds = now() + LAST_POLL_MAX;
      this.#spawn(this.#leave());
    }
    if (drainGraceMs <= 0) this.#tellAllToDrain();
    this.wake();
  }

  async #leave() {
    const body = JSON.stringify({ worker_id: this.setup.workerId });
    try {
      await this.transport.call({ method: "POST", path: path(["work", "leave"]), body, timeout: LAST_POLL_MAX });
    } catch (error) {
      this.log(`could not say that this worker leaves: ${error.message}`);
    }
  }

  // Asking for jobs.

  #wish(limit, waitMs) {
    const { workerId, queues, firstLeaseMs } = this.setup;
    const wish = { worker_id: workerId, types: this.types };
    if (queues !== undefined) wish.queues = queues;
    return { ...wish, limit, wait_ms: Math.trunc(waitMs), lease_ms: Math.trunc(firstLeaseMs) };
  }

  /** Keeps one long poll open as long as there is room. */
  #poll() {
    const room = this.#room();
    if (this.isPolling || room === 0 || this.ready.length > 0) return;
    // Reports on their way bring jobs along, and more cheaply. One that gets nowhere must not keep
    // everybody else waiting.
    if (this.reportsOut > 0 && now() < this.reportedAt + REPORT_FRESH) return;
    this.isPolling = true;
    this.reserved += room;
    this.#spawn(this.#pull(room));
  }

  async #pull(room) {
    const wait = this.setup.waitMs;
    const sentAt = now();
    const body = JSON.stringify(this.#wish(room, wait));
    const call = { method: "POST", path: path(["work", "pull"]), body, repeat: Repeat.NEVER, wait };
    let answer, failed;
    try {
      answer = await this.transport.call(call);
    } catch (error) {
      failed = error;
    }
    this.isPolling = false;
    this.reserved -= room;
    if (failed !== undefined) {
      this.#pollFailed(failed);
      return;
    }
    this.failedPolls = 0;
    const jobs = Array.isArray(answer?.jobs) ? answer.jobs : [];
    // Sent home long before its time: a worker that came again at once would spin.
    const isEarly = jobs.length === 0 && (wait === 0 || now() - sentAt < wait / 2);
    if (this.#takeIn(jobs, room) && !isEarly) this.idlePolls = 0;
    else this.#rest();
  }

  #pollFailed(error) {
    if (error.isRetryable) {
      this.failedPolls += 1;
      const wait = pause(this.failedPolls, error);
      this.wishNotBefore = now() + wait;
      this.log(`no jobs could be fetched; trying again in ${wait} ms: ${error.message}`);
      return;
    }
    this.fatal ??= error;
    this.drain();
  }

  /** Asks for nothing for a while, ever longer. */
  #rest() {
    this.idlePolls += 1;
    this.wishNotBefore = now() + Math.min(backoff(this.idlePolls), REST_MAX);
  }

  /** Takes in what was asked for; what is more, or of no use here, is given back. */
  #takeIn(jobs, askedFor) {
    let isAllWelcome = true;
    jobs.forEach((job, count) => {
      if (!this.#start(job, count < askedFor)) isAllWelcome = false;
    });
    if (!isAllWelcome) this.log("jobs came that were not asked for");
    return isAllWelcome;
  }

  /** Starts a job, or gives it back; answers whether it was one to start. */
  #start(pulled, hasRoom) {
    const token = pulled?.lease_token;
    // No job at all, or the same attempt once more: one is enough.
    if (typeof token !== "string" || this.held.has(token)) return false;
    const at = now();
    const lease = this.setup.firstLeaseMs;
    const job = attempt(pulled, lease);
    const held = new Held(new Context(job, this.transport, this.setup.workerId), at + lease);
    const beatAt = at + lease / 3;
    this.nextBeat = this.held.size === 0 ? beatAt : Math.min(this.nextBeat, beatAt);
    this.leasesEnd = Math.min(this.leasesEnd, held.endsAt);
    this.held.set(token, held);
    const handler = this.setup.handlers.get(job.job_type);
    let givenBack;
    if (this.drainEnds !== undefined) givenBack = SHUTTING_DOWN;
    else if (handler === undefined) givenBack = "this worker has no handler for it";
    else if (!hasRoom) givenBack = "this worker has no room for it";
    else {
      this.#launch(held, handler);
      return true;
    }
    this.ready.push(release(job, givenBack));
    return this.drainEnds !== undefined;
  }

  // Handlers.

  #launch(held, handler) {
    this.busy += 1;
    this.running += 1;
    const { timeAllowedMs } = held.ctx.job;
    held.arm(timeAllowedMs, () => this.#tellToStop(held, StopReason.TIMED_OUT));
    // In a turn of its own, so that no handler runs before all of its batch are taken in.
    Promise.resolve()
      .then(() => handler(held.ctx))
      .then((value) => ({ result: resultText(value) }))
      .catch((error) => ({ why: failure(error) }))
      .then((outcome) => this.#ended(held, outcome));
  }

  #tellToStop(held, reason) {
    if (!held.ctx._tellToStop(reason) || held.hasEnded) return;
    held.arm(this.setup.stopGraceMs, () => this.#drop(held));
  }

  #tellAllToDrain() {
    for (const held of this.held.values()) this.#tellToStop(held, StopReason.DRAINING);
  }

  /** Gives up on a handler that did not stop in time; its slot stays taken until it returns. */
  #drop(held) {
    if (held.hasEnded) return;
    held.isDropped = true;
    held.hasEnded = true;
    this.running -= 1;
    this.#settle(held, undefined);
    this.wake();
  }

  #ended(held, outcome) {
    this.busy -= 1;
    if (!held.isDropped) {
      held.hasEnded = true;
      this.running -= 1;
      this.#settle(held, outcome);
    }
    this.wake();
  }

  #settle(held, outcome) {
    held.disarm();
    const { job, stopReason: reason } = held.ctx;
    if (this.held.get(job.lease_token) !== held) return;
    if (outcome !== undefined && outcome.why === undefined) {
      // Work that was finished counts, whoever asked to stop meanwhile; the server decides.
      this.ready.push(complete(job, outcome.result));
    } else if (reason === StopReason.DRAINING) {
      this.ready.push(release(job, SHUTTING_DOWN));
    } else if (reason === undefined && outcome?.why instanceof Release) {
      this.ready.push(release(job, outcome.why.message));
    } else if (reason === undefined && outcome !== undefined) {
      this.ready.push(fail(job, outcome.why));
    } else {
      this.summary.lost += 1;
      this.held.delete(job.lease_token);
    }
  }

  // Reports.

  #sendReports() {
    while (this.ready.length > 0 && this.reportsOut < REPORTS_OUT_MAX) {
      const reports = this.#takeReports();
      const room = this.#room();
      this.reserved += room;
      this.reportsOut += 1;
      this.reportedAt = now();
      this.#spawn(this.#tell(reports, room, 0));
    }
  }

  /** The next batch: reports of one kind, within the size of a call. */
  #takeReports() {
    const { kind } = this.ready[0];
    const taken = [];
    const left = [];
    let size = 0;
    for (const report of this.ready) {
      const fits = taken.length === 0 || size + report.text.length <= REPORT_BYTES_MAX;
      if (report.kind === kind && fits) {
        size += report.text.length;
        taken.push(report);
      } else {
        left.push(report);
      }
    }
    this.ready = left;
    return taken;
  }

  async #tell(reports, room, wait) {
    if (wait > 0) await sleep(wait);
    const wish = room > 0 ? this.#wish(room, 0) : undefined;
    let told;
    try {
      told = await tell(this.transport, reports, wish, this.log);
    } finally {
      this.reportsOut -= 1;
      this.reserved -= room;
    }
    for (const [report, refusal] of told.reports) {
      this.held.delete(report.job.lease_token);
      if (refusal !== undefined) {
        this.summary.refused += 1;
        this.log(`a report about ${report.job.job_id} was refused: ${refusal}`);
      } else if (report.kind === "complete") this.summary.completed += 1;
      else if (report.kind === "fail") this.summary.failed += 1;
      else this.summary.released += 1;
    }
    if (told.later !== undefined) {
      this.reportsOut += 1;
      this.#spawn(this.#tell(told.later.reports, 0, told.later.wait));
    }
    // Without a wish there is nothing to give back: a server that answered each release with more
    // jobs would be told of releases for ever. Their leases run out.
    if (told.reserved > 0 && !this.#takeIn(told.jobs, told.reserved)) this.#rest();
  }

  // Heartbeats.

  #beat(at) {
    if (this.beatsOut > 0) return;
    // If one of many cannot be renewed at present, the call fails for all of them. So they go apart
    // after a failure, and together again, by and by, when there was none.
    this.beatItems = this.hasBeatFailed
      ? Math.max(Math.ceil(this.held.size / BEAT_PARTS_MAX), 1)
      : Math.min(this.beatItems * 2, BEAT_ITEMS_MAX);
    this.hasBeatFailed = false;
    const all = [...this.held.values()];
    for (let first = 0; first < all.length; first += this.beatItems) {
      this.beatsOut += 1;
      this.#spawn(this.#beatPart(all.slice(first, first + this.beatItems), at));
    }
  }

  async #beatPart(part, sentAt) {
    const { workerId, leaseMs } = this.setup;
    const items = part.map(({ ctx }) => {
      const item = { job_id: ctx.job.job_id, lease_token: ctx.job.lease_token };
      return ctx._progress === undefined ? item : { ...item, progress: ctx._progress };
    });
    const body = JSON.stringify({ worker_id: workerId, lease_ms: Math.trunc(leaseMs), items });
    // A heartbeat that hangs must not keep the next one from going out.
    const timeout = Math.min(leaseMs / 3, BEAT_WAIT_MAX);
    const call = { method: "POST", path: path(["work", "heartbeat"]), body, repeat: Repeat.NEVER, timeout };
    try {
      const answer = await this.transport.call(call);
      if (!isAbout(answer, items.map((item) => item.job_id))) {
        this.#beatSoon("it is not answered lease by lease");
        return;
      }
      part.forEach((held, index) => this.#beaten(held, answer.items[index], sentAt));
    } catch (error) {
      if (!(error instanceof MainspringError)) throw error;
      this.#beatSoon(error.message);
    } finally {
      this.beatsOut -= 1;
    }
  }

  #beaten(held, item, sentAt) {
    if (this.held.get(held.ctx.job.lease_token) !== held) return;
    if (item.cancelled === true) this.#tellToStop(held, StopReason.CANCELLED);
    else if (item.lost === true) this.#tellToStop(held, StopReason.LEASE_LOST);
    else if (item.lease_expires_at) held.endsAt = sentAt + this.setup.leaseMs;
  }

  #beatSoon(why) {
    this.log(`a heartbeat failed; trying again soon: ${why}`);
    this.hasBeatFailed = true;
    this.nextBeat = Math.min(this.nextBeat, now() + Math.min(this.setup.leaseMs / 10, BEAT_AGAIN_MAX));
  }
}

/** A job this worker holds. */
class Held {
  hasEnded = false;
  isDropped = false;
  #timers = [];

  constructor(ctx, endsAt) {
    this.ctx = ctx;
    /** When the lease ends as far as we know. */
    this.endsAt = endsAt;
  }

  arm(ms, then) {
    this.#timers.push(setTimeout(then, Math.min(Math.max(ms, 0), TIMER_MAX)));
  }

  disarm() {
    this.#timers.forEach(clearTimeout);
    this.#timers = [];
  }
}

function attempt(pulled, lease) {
  // The server's clock may differ from ours, so only the difference of two of its own instants
  // counts: the deadline, and the grant, which is one lease before the lease's end.
  const grantedAt = Date.parse(pulled.lease_expires_at) - lease;
  const allowed = Date.parse(pulled.deadline_at) - grantedAt;
  return { ...pulled, timeAllowedMs: Number.isFinite(allowed) ? Math.max(allowed, 0) : 0 };
}

function failure(error) {
  if (error instanceof Failure || error instanceof Release) return error;
  const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  return new Failure(CODE_DEFAULT, text);
}
