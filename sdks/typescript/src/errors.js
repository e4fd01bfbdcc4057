// What can go wrong: between here and the server, and in a handler.

/** The code of failures that do not have their own. */
export const CODE_DEFAULT = "TASK_EXECUTION_FAILED";

const PASSING = new Set([429, 502, 503, 504]);

/** A call that did not give what was asked for. */
export class MainspringError extends Error {
  constructor(message, options) {
    super(message, options);
    this.name = this.constructor.name;
    this.code = undefined;
    this.status = undefined;
    /** How many milliseconds the server asked to be left alone. */
    this.retryAfter = undefined;
  }
  /** Whether the same call may go better later, given that repeating it does no harm. */
  get isRetryable() {
    return false;
  }
  /** Whether the server certainly did nothing. */
  get isCertainlyUndone() {
    return false;
  }
}

/** No answer. Unless `wasSent` is false, the server may or may not have acted. */
export class Unreachable extends MainspringError {
  constructor(url, wasSent, cause) {
    const why = cause?.cause?.code ?? cause?.code ?? cause?.message ?? String(cause);
    super(`cannot reach ${url}: ${why}`, { cause });
    this.wasSent = wasSent;
  }
  get isRetryable() {
    return true;
  }
  get isCertainlyUndone() {
    return !this.wasSent;
  }
}

/** The server said no. */
export class Refused extends MainspringError {
  constructor(status, error, requestId = "", retryAfter = undefined) {
    super(`${error.code}: ${error.message ?? ""}`);
    this.status = status;
    this.code = String(error.code);
    this.errorClass = error.class ?? "";
    this.retryable = error.retryable === true;
    this.details = error.details ?? null;
    this.requestId = requestId;
    this.retryAfter = retryAfter;
  }
  get isRetryable() {
    return this.retryable || PASSING.has(this.status);
  }
  get isCertainlyUndone() {
    return this.status === 429;
  }
}

/** An answer that this client cannot read; perhaps not from Mainspring at all. */
export class Unreadable extends MainspringError {
  constructor(call, status, reason) {
    super(`the answer to ${call} cannot be read (HTTP ${status}): ${reason}`);
    this.status = status;
  }
  get isRetryable() {
    return PASSING.has(this.status);
  }
}

/** Thrown by a handler: why its attempt did not succeed. Any other error is one that may pass. */
export class Failure extends Error {
  constructor(code = CODE_DEFAULT, message = "", { retryable = true, retryDelayMs } = {}) {
    super(message);
    this.name = "Failure";
    this.code = code;
    this.retryable = retryable;
    /** Your own wish for the next delay. */
    this.retryDelayMs = retryDelayMs;
    /** No failure: the job is put off for this long. */
    this.snoozeMs = undefined;
  }
  /** No failure at all: the job comes back after this long, and no try is used. Only so often. */
  static snooze(ms, reason = "") {
    const snoozed = new Failure(CODE_DEFAULT, reason);
    snoozed.snoozeMs = ms;
    return snoozed;
  }
  /** A failure that will not pass: the job goes to the dead letter queue. */
  static permanent(code, message = "") {
    return new Failure(code, message, { retryable: false });
  }
}

/** Thrown by a handler: no failure at all. The job goes back to its queue, no try is used. */
export class Release extends Error {
  constructor(reason = "given back by its handler") {
    super(reason);
    this.name = "Release";
  }
}

/** Thrown by `ctx.check()` when the handler should stop; let it pass through. */
export class Stopped extends Error {
  constructor(reason) {
    super(reason);
    this.name = "Stopped";
    this.reason = reason;
  }
}
