// A worker as it is described: for whom, which handlers, within which bounds. The loop that runs it
// is in run.js.

import { hostname } from "node:os";
import { Client } from "./client.js";
import { CONCURRENCY_MAX, FIRST_LEASE_MAX, LEASE_MAX, LEASE_MIN, TIMER_MAX, WAIT_MAX } from "./limits.js";
import { Run } from "./run.js";

const within = (value, least, most) => Math.min(Math.max(Number(value), least), most);

export class Worker {
  #handlers = new Map();
  #run;
  #isStopping = false;

  constructor(client = new Client(), options = {}) {
    this.client = client;
    this.workerId = options.workerId ?? `${hostname() || "worker"}-${process.pid}`;
    this.queues = options.queues?.length > 0 ? [...options.queues] : undefined;
    this.concurrency = Math.trunc(within(options.concurrency ?? 4, 1, CONCURRENCY_MAX));
    this.leaseMs = within(options.leaseMs ?? 15_000, LEASE_MIN, LEASE_MAX);
    this.waitMs = within(options.waitMs ?? 20_000, 0, WAIT_MAX);
    this.drainGraceMs = within(options.drainGraceMs ?? 25_000, 0, TIMER_MAX);
    this.stopGraceMs = within(options.stopGraceMs ?? 5_000, 0, TIMER_MAX);
    this.log = options.log ?? ((text) => console.warn(`mainspring: ${text}`));
  }

  /** The lease a pull asks for: short, until the worker has shown that it got the job. */
  get firstLeaseMs() {
    return Math.min(this.leaseMs, FIRST_LEASE_MAX);
  }

  /** Runs `handler` for jobs of `jobType`. What it answers becomes the job's result. */
  task(jobType, handler) {
    this.#handlers.set(jobType, handler);
    return this;
  }

  /** Drains the worker. */
  stop() {
    this.#isStopping = true;
    this.#run?.drain();
  }

  /** Runs until `stop`, SIGTERM or SIGINT, and everything is reported, given back or given up. */
  async run({ signals = ["SIGTERM", "SIGINT"] } = {}) {
    const { workerId, queues, concurrency, leaseMs, firstLeaseMs, waitMs, drainGraceMs, stopGraceMs } = this;
    const handlers = new Map(this.#handlers);
    const setup = { workerId, queues, concurrency, leaseMs, firstLeaseMs, waitMs, drainGraceMs, stopGraceMs, handlers };
    this.#run = new Run(setup, this.client.transport, this.log);
    if (this.#isStopping) this.#run.drain();
    const stop = () => this.stop();
    signals.forEach((signal) => process.on(signal, stop));
    try {
      return await this.#run.until();
    } finally {
      signals.forEach((signal) => process.off(signal, stop));
    }
  }
}
