// The types of the package. Answers are plain objects in the words of the wire; they may grow.

/** Any JSON value. */
export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

export interface Options {
  /** Default: `MAINSPRING_URL`, then `http://127.0.0.1:7070`. */
  url?: string;
  /** Default: `MAINSPRING_TOKEN`. */
  token?: string;
  /** Default: `MAINSPRING_TRACE_ID`. */
  traceId?: string;
  /** File of the authorities (PEM) that are trusted instead of the platform's. Default: `MAINSPRING_CA_FILE`. */
  caFile?: string;
}

export interface ErrorCode {
  code: string;
  message: string;
}

export interface SubmitOptions {
  runAt?: string;
  delayMs?: number;
  priority?: number;
  queue?: string;
  timeoutMs?: number;
  maxRetries?: number;
  idempotencyKey?: string;
  idempotencyScope?: string;
  traceId?: string;
  parentId?: string;
  labels?: Record<string, string>;
  subject?: string;
  expiresAt?: string;
  deadlineAt?: string;
  queueTimeoutMs?: number;
  after?: string[];
  afterCondition?: "success" | "end";
  concurrencyKey?: string;
}

/** The wish for a job, as it is sent. */
export interface Wish {
  job_type: string;
  payload: unknown;
  idempotency_key?: string;
  [field: string]: unknown;
}

/** A job. Of one that this caller may not read, only `job_id` and `status` are there. */
export interface Job {
  job_id: string;
  status: string;
  job_type?: string;
  queue?: string;
  priority?: number;
  retry_count?: number;
  attempt?: number;
  max_retries?: number;
  payload?: Json;
  result?: Json;
  error_code?: string | null;
  last_error?: { code: string; message: string; retryable: boolean; at: string; exhausted: boolean } | null;
  labels?: Record<string, string>;
  progress_pct?: number | null;
  idempotent_hit?: boolean;
  [field: string]: unknown;
}

export interface Page<T> {
  items: T[];
  next_cursor: string | null;
  total: number | null;
  total_at_least?: number;
}

export interface SubmittedItem {
  job_id?: string;
  status?: string;
  idempotent_hit?: boolean;
  error?: ErrorCode;
}

export interface JobFilter {
  status?: string;
  jobType?: string;
  queue?: string;
  traceId?: string;
  userId?: string;
  errorCode?: string;
  parentId?: string;
  labels?: Record<string, string>;
  createdAfter?: string;
  createdBefore?: string;
  cursor?: string;
  limit?: number;
}

export interface JobEvent {
  seq: number;
  event_id: string;
  from_state: string | null;
  to_state: string;
  occurred_at: string;
  attempt: number;
  reason_code: string | null;
  reason_message: string | null;
  actor: string;
  trace_id: string;
}

export interface TypeSpec {
  domain?: string;
  schedulable?: boolean;
  priority?: number;
  timeout_seconds?: number;
  max_retries?: number;
  concurrency_limit?: number | null;
  concurrency_scope?: string;
  queue?: string;
  backoff_base_ms?: number;
  backoff_max_ms?: number;
}

export interface JobType extends Required<TypeSpec> {
  job_type: string;
}

/** A job as its worker gets it: one attempt. */
export interface PulledJob {
  job_id: string;
  job_type: string;
  payload: Json;
  attempt: number;
  retry_count: number;
  lease_token: string;
  lease_expires_at: string;
  deadline_at: string;
  execution_key: string;
  trace_id: string;
  labels: Record<string, string>;
  /** What an earlier try left with `ctx.checkpoint`, the last of it. */
  checkpoint?: Json;
}

export interface Attempt extends PulledJob {
  /** How long the attempt may take. Clocks may differ; this does not depend on them. */
  timeAllowedMs: number;
}

export interface PullOptions {
  types?: string[];
  queues?: string[];
  limit?: number;
  waitMs?: number;
  leaseMs?: number;
}

export interface LeaseItem {
  job_id: string;
  lease_token: string;
  [field: string]: unknown;
}

export interface Reported {
  items: { job_id: string; status?: string; error?: ErrorCode }[];
  jobs?: PulledJob[];
}

export interface Beaten {
  items: { job_id: string; lease_expires_at?: string; lost?: boolean; cancelled?: boolean }[];
}

export interface Effect {
  job_id: string;
  name: string;
  value: Json;
  is_first: boolean;
}

export type Answer = Record<string, unknown>;

export function wish(jobType: string, payload?: unknown, options?: SubmitOptions): Wish;

export class Client {
  constructor(options?: Options);
  readonly url: string;
  submit(jobType: string, payload?: unknown, options?: SubmitOptions & { waitMs?: number }): Promise<Job>;
  submitBatch(jobs: Wish[], options?: { then?: Wish }): Promise<{ items: SubmittedItem[] }>;
  job(jobId: string, options?: { waitMs?: number }): Promise<Job>;
  jobs(filter?: JobFilter): Promise<Page<Job>>;
  jobEvents(jobId: string): Promise<{ items: JobEvent[] }>;
  explain(jobId: string): Promise<Answer>;
  cancel(jobId: string, reason?: string): Promise<Job>;
  types(): Promise<Page<JobType>>;
  jobType(name: string): Promise<JobType>;
  setType(name: string, spec?: TypeSpec): Promise<JobType>;
  queues(): Promise<Answer>;
  pauseQueue(name: string): Promise<Answer>;
  resumeQueue(name: string): Promise<Answer>;
  runtime(): Promise<Answer>;
  /** Whose token this is. */
  whoami(): Promise<{ tenant_id: string; user_id: string; roles: string[] }>;
  createSchedule(schedule: Answer): Promise<Answer>;
  schedules(filter?: {
    status?: string;
    jobType?: string;
    owner?: string;
    cursor?: string;
    limit?: number;
  }): Promise<Page<Answer>>;
  schedule(scheduleId: string): Promise<Answer>;
  updateSchedule(scheduleId: string, schedule: Answer): Promise<Answer>;
  deleteSchedule(scheduleId: string): Promise<Answer>;
  pauseSchedule(scheduleId: string, note?: string): Promise<Answer>;
  resumeSchedule(scheduleId: string): Promise<Answer>;
  stopSchedule(scheduleId: string): Promise<Answer>;
  triggerSchedule(scheduleId: string): Promise<Answer>;
  previewSchedule(scheduleId: string, options?: { count?: number; from?: string }): Promise<Answer>;
  scheduleHistory(scheduleId: string): Promise<Answer>;
  pull(workerId: string, options?: PullOptions): Promise<{ jobs: PulledJob[] }>;
  complete(items: LeaseItem[], pull?: Answer): Promise<Reported>;
  fail(items: LeaseItem[], pull?: Answer): Promise<Reported>;
  release(items: LeaseItem[], pull?: Answer): Promise<Reported>;
  heartbeat(workerId: string, items: LeaseItem[], options?: { leaseMs?: number }): Promise<Beaten>;
  leave(workerId: string): Promise<Answer>;
  effect(jobId: string, name: string, leaseToken: string): Promise<Effect>;
  commitEffect(jobId: string, name: string, leaseToken: string, value: unknown): Promise<Effect>;
}

/** Why a handler should stop. */
export const StopReason: {
  readonly CANCELLED: "cancelled";
  readonly LEASE_LOST: "lease_lost";
  readonly TIMED_OUT: "timed_out";
  readonly DRAINING: "draining";
};
export type StopReason = (typeof StopReason)[keyof typeof StopReason];

/** A running attempt, as its handler sees it. */
export class Context {
  private constructor();
  readonly job: Attempt;
  /** What to work on. */
  readonly payload: any;
  /** Aborted when the handler should stop. One that does not is given up after a while. */
  readonly signal: AbortSignal;
  readonly stopReason: StopReason | undefined;
  /** Throws `Stopped` if the handler should stop. */
  check(): void;
  /** Tells how far the work is, in percent and for people; sent with the next heartbeat. */
  progress(percent: number, message?: string): void;
  /** Leaves a value for the next try; kept once this resolves. */
  checkpoint(value: Json): Promise<void>;
  /**
   * Does something once per job, however often the job is tried: the first value that is recorded
   * under `name` is what every later try gets, without running `work` again. If the worker dies
   * between the work and its record, the next try runs the work again; pass `job.execution_key` or
   * the job id to systems that can tell repeats apart.
   */
  step<T>(name: string, work: () => T | Promise<T>): Promise<T>;
}

export interface WorkerOptions {
  /** Default: host and process. */
  workerId?: string;
  /** Only jobs of these queues. */
  queues?: string[];
  /** How many jobs run side by side; 4. */
  concurrency?: number;
  /** How long a job stays ours without a heartbeat; 15,000. The first lease is at most 5,000. */
  leaseMs?: number;
  /** How long one long poll waits for work; 20,000. */
  waitMs?: number;
  /** How long running jobs may go on after the worker was told to stop; 25,000. */
  drainGraceMs?: number;
  /** How long a handler that was told to stop has before it is given up; 5,000. */
  stopGraceMs?: number;
  /** Where warnings go; `console.warn`. */
  log?: (text: string) => void;
}

export interface Summary {
  completed: number;
  failed: number;
  released: number;
  lost: number;
  refused: number;
}

export class Worker {
  constructor(client?: Client, options?: WorkerOptions);
  readonly workerId: string;
  /** Runs `handler` for jobs of `jobType`. What it answers becomes the job's result. */
  task(jobType: string, handler: (ctx: Context) => unknown): this;
  /** Drains the worker: what was not started is given back, what runs may finish. */
  stop(): void;
  /** Runs until `stop` or a signal. Rejects if the server does not hand out jobs to it for good. */
  run(options?: { signals?: ("SIGTERM" | "SIGINT" | "SIGHUP")[] }): Promise<Summary>;
}

/** A call that did not give what was asked for. */
export class MainspringError extends Error {
  code: string | undefined;
  status: number | undefined;
  retryAfter: number | undefined;
  readonly isRetryable: boolean;
  readonly isCertainlyUndone: boolean;
}

/** No answer. Unless `wasSent` is false, the server may or may not have acted. */
export class Unreachable extends MainspringError {
  readonly wasSent: boolean;
}

/** The server said no. */
export class Refused extends MainspringError {
  readonly errorClass: string;
  readonly retryable: boolean;
  readonly details: Json;
  readonly requestId: string;
}

/** An answer that this client cannot read; perhaps not from Mainspring at all. */
export class Unreadable extends MainspringError {}

/** Thrown by a handler: why its attempt did not succeed. Any other error is one that may pass. */
export class Failure extends Error {
  constructor(code?: string, message?: string, options?: { retryable?: boolean; retryDelayMs?: number });
  static permanent(code: string, message?: string): Failure;
  /** No failure at all: the job comes back after this long, and no try is used. */
  static snooze(ms: number, reason?: string): Failure;
  readonly code: string;
  readonly retryable: boolean;
  readonly retryDelayMs: number | undefined;
  readonly snoozeMs: number | undefined;
}

/** Thrown by a handler: no failure at all. The job goes back to its queue, no try is used. */
export class Release extends Error {
  constructor(reason?: string);
}

/** Thrown by `ctx.check()` when the handler should stop; let it pass through. */
export class Stopped extends Error {
  constructor(reason: string);
  readonly reason: string;
}
