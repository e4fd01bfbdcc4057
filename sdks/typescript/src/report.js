// What is said to the server about finished attempts. A report is repeated until it is accepted or
// refused: a repeat is answered like the first time, so a lost answer loses nothing. The wish that
// rides along is sent once only, because a lost answer may hold jobs.

import { Repeat, path, pause, sleep } from "./call.js";
import { CODE_BYTES_MAX, MESSAGE_BYTES_MAX } from "./limits.js";
import { Failure, MainspringError, Unreadable } from "./errors.js";

/** The code of a failure whose own words the server refused. */
const REPORT_REFUSED = "REPORT_REFUSED";
/** Codes of refusals that are about the lease, not about what was said. */
const ABOUT_LEASE = new Set(["LEASE_LOST", "REPORT_CONFLICT"]);

const item = (job, more = {}) => JSON.stringify({ job_id: job.job_id, lease_token: job.lease_token, ...more });

/** The attempt succeeded, perhaps with a result, as JSON text. */
export function complete(job, result) {
  const text = result === undefined ? item(job) : `${item(job).slice(0, -1)},"result":${result}}`;
  return { kind: "complete", job, text };
}

/** The attempt failed. */
export function fail(job, failure) {
  const said = {
    error_code: cut(failure.code, CODE_BYTES_MAX),
    message: cut(failure.message, MESSAGE_BYTES_MAX),
    retryable: failure.retryable,
  };
  if (failure.snoozeMs !== undefined) said.snooze_ms = Math.max(0, Math.trunc(failure.snoozeMs));
  else if (failure.retryDelayMs !== undefined) said.retry_delay_ms = Math.max(0, Math.trunc(failure.retryDelayMs));
  return { kind: "fail", job, text: item(job, said), failure };
}

/** The attempt is given back unused. */
export function release(job, reason) {
  return { kind: "release", job, text: item(job, { reason: cut(reason, MESSAGE_BYTES_MAX) }) };
}

/** What to say instead of a report that was refused for what it says, if there is something left. */
function instead(report, why) {
  if (report.kind === "complete") return fail(report.job, Failure.permanent("RESULT_REFUSED", why));
  if (report.kind === "fail" && report.failure.code !== REPORT_REFUSED) {
    const { retryable, retryDelayMs } = report.failure;
    return fail(report.job, new Failure(REPORT_REFUSED, why, { retryable, retryDelayMs }));
  }
  return undefined;
}

/**
 * Sends reports of one kind until they are accepted or refused. If the server refuses a call as a
 * whole, its halves are sent apart, so that one report never spoils its neighbours. A report that
 * it refuses for what it says becomes a failure that says so.
 */
export async function tell(transport, reports, wish, log) {
  const told = { reserved: wish?.limit ?? 0, reports: [], jobs: [], later: undefined };
  const parts = [reports];
  const otherWords = (report, why, isAboutContent) => {
    const other = isAboutContent ? instead(report, why) : undefined;
    if (other === undefined) told.reports.push([report, why]);
    else parts.push([other]);
  };
  while (parts.length > 0) {
    const part = parts.pop();
    const withWish = wish;
    wish = undefined;
    let answer;
    try {
      answer = await deliver(transport, part, withWish, log);
    } catch (error) {
      if (!(error instanceof MainspringError)) throw error;
      if (error.isRetryable) told.later = { reports: part, wait: pause(1, error) };
      else if (part.length > 1) parts.push(part.splice(part.length >> 1), part);
      else otherWords(part[0], error.message, [400, 413, 422].includes(error.status));
      continue;
    }
    if (Array.isArray(answer.jobs)) told.jobs.push(...answer.jobs);
    part.forEach((report, index) => {
      const refusal = answer.items[index].error;
      if (refusal === undefined || refusal === null) told.reports.push([report, undefined]);
      else otherWords(report, `${refusal.code}: ${refusal.message}`, !ABOUT_LEASE.has(refusal.code));
    });
  }
  return told;
}

/** Repeats the call until it is answered, unless it came with a wish: that is sent once. */
async function deliver(transport, part, wish, log) {
  const pull = wish === undefined ? "" : `,"pull":${JSON.stringify(wish)}`;
  const body = `{"items":[${part.map((report) => report.text).join(",")}]${pull}}`;
  const call = { method: "POST", path: path(["work", part[0].kind]), body, repeat: Repeat.NEVER };
  for (let tries = 1; ; tries += 1) {
    try {
      const answer = await transport.call(call);
      // Halved and repeated: nothing is believed to be taken that was not said to be.
      if (!isAbout(answer, part.map((report) => report.job.job_id))) {
        throw new Unreadable("report", 200, "it is about other jobs than it should be");
      }
      return answer;
    } catch (error) {
      if (!error.isRetryable || wish !== undefined) throw error;
      log(`a report could not be delivered; trying again: ${error.message}`);
      await sleep(pause(tries, error));
    }
  }
}

/** Whether an answer is about the jobs asked about, in order. An unreadable item has no job. */
export function isAbout(answer, asked) {
  const items = answer?.items;
  if (!Array.isArray(items) || items.length !== asked.length) return false;
  return items.every((one, index) => one?.job_id === asked[index] || one?.job_id === "");
}

function cut(text, bytesMax) {
  const bytes = Buffer.from(String(text));
  if (bytes.length <= bytesMax) return bytes.toString();
  let end = bytesMax;
  while (end > 0 && (bytes[end] & 0xc0) === 0x80) end -= 1;
  return bytes.subarray(0, end).toString();
}
