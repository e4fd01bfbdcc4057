// The client. Calls that can be repeated without harm are repeated when the server cannot be
// reached or says "not now"; others only when they certainly did not arrive.

import { Repeat, Transport, filled, path, settings } from "./call.js";

const post = (parts, value, more = {}) => ({
  method: "POST",
  path: path(parts, more.query),
  body: value === undefined ? undefined : JSON.stringify(value),
  repeat: Repeat.SAFE,
  ...more,
});

/** The wish for a job, as `submit` sends it and `submitBatch` takes it. */
export function wish(jobType, payload = null, options = {}) {
  const more = filled({
    run_at: options.runAt,
    delay_ms: options.delayMs,
    priority: options.priority,
    queue: options.queue,
    timeout_ms: options.timeoutMs,
    max_retries: options.maxRetries,
    idempotency_key: options.idempotencyKey,
    idempotency_scope: options.idempotencyScope,
    trace_id: options.traceId,
    parent_id: options.parentId,
    labels: options.labels,
    subject: options.subject,
    expires_at: options.expiresAt,
    deadline_at: options.deadlineAt,
    queue_timeout_ms: options.queueTimeoutMs,
    after: options.after,
    after_condition: options.afterCondition,
    concurrency_key: options.concurrencyKey,
  });
  return { job_type: jobType, payload, ...more };
}

export class Client {
  /** What is not said comes from `MAINSPRING_URL`, `MAINSPRING_TOKEN` (or the file `MAINSPRING_TOKEN_FILE`), `MAINSPRING_CA_FILE` and `MAINSPRING_TRACE_ID`. */
  constructor(options = {}) {
    this.transport = new Transport(settings(options));
  }

  get url() {
    return this.transport.settings.url;
  }

  #do(call) {
    return this.transport.call(call);
  }

  #get(parts, query, wait = 0) {
    return this.#do({ path: path(parts, query), repeat: Repeat.SAFE, wait });
  }

  #put(parts, value) {
    return this.#do({ ...post(parts, value), method: "PUT" });
  }

  // Jobs.

  submit(jobType, payload, options = {}) {
    const repeat = options.idempotencyKey != null ? Repeat.SAFE : Repeat.UNSAFE;
    const more = { repeat, query: { wait_ms: options.waitMs }, wait: options.waitMs ?? 0 };
    return this.#do(post(["jobs"], wish(jobType, payload, options), more));
  }

  /** `then` waits for all of the jobs and comes last; with it, all are taken or none. */
  submitBatch(jobs, { then } = {}) {
    const all = then === undefined ? jobs : [...jobs, then];
    const hasKeys = all.every((job) => job.idempotency_key != null);
    const batch = filled({ jobs, then });
    return this.#do(post(["jobs", "batch"], batch, { repeat: hasKeys ? Repeat.SAFE : Repeat.UNSAFE }));
  }

  job(jobId, { waitMs } = {}) {
    return this.#get(["jobs", jobId], { wait_ms: waitMs }, waitMs ?? 0);
  }

  jobs(filter = {}) {
    const labels = Object.entries(filter.labels ?? {}).map(([name, value]) => `${name}=${value}`);
    return this.#get(["jobs"], {
      status: filter.status,
      type: filter.jobType,
      queue: filter.queue,
      trace_id: filter.traceId,
      user_id: filter.userId,
      error_code: filter.errorCode,
      parent_id: filter.parentId,
      created_after: filter.createdAfter,
      created_before: filter.createdBefore,
      cursor: filter.cursor,
      limit: filter.limit,
      label: labels,
    });
  }

  jobEvents(jobId) {
    return this.#get(["jobs", jobId, "events"]);
  }

  explain(jobId) {
    return this.#get(["jobs", jobId, "explain"]);
  }

  cancel(jobId, reason) {
    return this.#do(post(["jobs", jobId, "cancel"], filled({ reason }), { repeat: Repeat.UNSAFE }));
  }

  // Types, queues, the server.

  types() {
    return this.#get(["types"]);
  }

  jobType(name) {
    return this.#get(["types", name]);
  }

  setType(name, spec = {}) {
    return this.#put(["types", name], spec);
  }

  queues() {
    return this.#get(["queues"]);
  }

  pauseQueue(name) {
    return this.#do(post(["queues", name, "pause"]));
  }

  resumeQueue(name) {
    return this.#do(post(["queues", name, "resume"]));
  }

  runtime() {
    return this.#get(["runtime"]);
  }

  whoami() {
    return this.#get(["whoami"]);
  }

  // Schedules.

  createSchedule(schedule) {
    return this.#do(post(["schedules"], schedule, { repeat: Repeat.UNSAFE }));
  }

  schedules(filter = {}) {
    const { status, jobType, owner, cursor, limit } = filter;
    return this.#get(["schedules"], { status, job_type: jobType, owner, cursor, limit });
  }

  schedule(scheduleId) {
    return this.#get(["schedules", scheduleId]);
  }

  updateSchedule(scheduleId, schedule) {
    return this.#put(["schedules", scheduleId], schedule);
  }

  deleteSchedule(scheduleId) {
    return this.#do({ method: "DELETE", path: path(["schedules", scheduleId]), repeat: Repeat.UNSAFE });
  }

  pauseSchedule(scheduleId, note) {
    return this.#do(post(["schedules", scheduleId, "pause"], filled({ note })));
  }

  resumeSchedule(scheduleId) {
    return this.#do(post(["schedules", scheduleId, "resume"]));
  }

  stopSchedule(scheduleId) {
    return this.#do(post(["schedules", scheduleId, "stop"]));
  }

  triggerSchedule(scheduleId) {
    return this.#do(post(["schedules", scheduleId, "trigger"], undefined, { repeat: Repeat.UNSAFE }));
  }

  previewSchedule(scheduleId, { count, from } = {}) {
    return this.#get(["schedules", scheduleId, "preview"], { count, from });
  }

  scheduleHistory(scheduleId) {
    return this.#get(["schedules", scheduleId, "history"]);
  }

  // Work. `Worker` makes all of these for you; here they are sent once.

  pull(workerId, options = {}) {
    const { types, queues, limit, waitMs, leaseMs } = options;
    const asked = filled({ worker_id: workerId, types, queues, limit, wait_ms: waitMs, lease_ms: leaseMs });
    return this.#do(post(["work", "pull"], asked, { repeat: Repeat.NEVER, wait: waitMs ?? 0 }));
  }

  complete(items, pull) {
    return this.#do(post(["work", "complete"], filled({ items, pull }), { repeat: Repeat.NEVER }));
  }

  fail(items, pull) {
    return this.#do(post(["work", "fail"], filled({ items, pull }), { repeat: Repeat.NEVER }));
  }

  release(items, pull) {
    return this.#do(post(["work", "release"], filled({ items, pull }), { repeat: Repeat.NEVER }));
  }

  heartbeat(workerId, items, { leaseMs } = {}) {
    const beat = filled({ worker_id: workerId, lease_ms: leaseMs, items });
    return this.#do(post(["work", "heartbeat"], beat, { repeat: Repeat.NEVER }));
  }

  leave(workerId) {
    return this.#do(post(["work", "leave"], { worker_id: workerId }));
  }

  effect(jobId, name, leaseToken) {
    return this.#do(effect(jobId, name, leaseToken));
  }

  commitEffect(jobId, name, leaseToken, value) {
    return this.#do(commitEffect(jobId, name, leaseToken, value));
  }
}

export function effect(jobId, name, leaseToken, repeat = Repeat.SAFE) {
  return { path: path(["work", "effects", jobId, name]), headers: { "x-lease-token": leaseToken }, repeat };
}

export function commitEffect(jobId, name, leaseToken, value, repeat = Repeat.SAFE) {
  return { ...post(["work", "effects", jobId, name], { lease_token: leaseToken, value }), method: "PUT", repeat };
}
