// The recorded conversations, as in every SDK. The package under test is found by its name.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Client, Failure, MainspringError, Worker } from "mainspring";
import { ReplayServer, transcripts } from "./replay_server.js";

const ALL = Object.entries(transcripts());
const camel = (name) => name.replace(/_(\w)/g, (_, letter) => letter.toUpperCase());
/** Options are in camelCase here; what they hold is not touched. */
const camelKeys = (fields) => Object.fromEntries(Object.entries(fields).map(([name, value]) => [camel(name), value]));

for (const [name, transcript] of ALL.filter(([, it]) => it.client)) {
  test(`client: ${name}`, async () => {
    const server = await ReplayServer.start(transcript);
    const client = new Client({ url: server.url, token: "replayed" });
    for (const step of transcript.client) {
      const given = [...step.with];
      const fixed = { submit: 2, jobs: 0 }[step.call] ?? given.length;
      if (given.length > fixed) given.push(camelKeys(given.pop()));
      let got;
      try {
        got = await client[camel(step.call)](...given);
      } catch (error) {
        assert.ok(error instanceof MainspringError, error);
        assert.deepEqual({ status: error.status, code: error.code }, step.error);
        continue;
      }
      assert.equal(step.error, undefined);
      for (const [field, value] of Object.entries(step.gives)) assert.deepEqual(got[field], value, field);
    }
    assert.deepEqual([server.unexpected, server.left], [[], []]);
    server.close();
  });
}

for (const [name, transcript] of ALL.filter(([, it]) => it.worker)) {
  test(`worker: ${name}`, async () => {
    const server = await ReplayServer.start(transcript);
    const wanted = transcript.worker;
    const { worker_id: workerId, concurrency, lease_ms: leaseMs, wait_ms: waitMs } = wanted.options;
    const client = new Client({ url: server.url, token: "replayed" });
    const worker = new Worker(client, { workerId, concurrency, leaseMs, waitMs, log: () => {} });
    const seen = { stops: {}, steps: 0 };
    let stopped;
    const stopping = new Promise((resolve) => (stopped = resolve));
    for (const [type, does] of Object.entries(wanted.types)) worker.task(type, handler(does, seen, stopping));

    const run = worker.run({ signals: [] });
    await server.until((it) => it.left.every((exchange) => exchange.after_stop));
    worker.stop();
    // What came late is given back before what runs may end.
    const late = transcript.exchanges.some(({ request }) => request.path.endsWith("/release"));
    if (late) await server.until((it) => it.left.length <= 1);
    stopped();
    const summary = await run;
    assert.deepEqual([server.unexpected, server.left], [[], []]);
    const nonzero = Object.fromEntries(Object.entries(summary).filter(([, count]) => count > 0));
    assert.deepEqual(nonzero, wanted.summary);
    assert.deepEqual(seen, { stops: wanted.stops ?? {}, steps: wanted.steps ?? 0 });
    server.close();
  });
}

function handler(does, seen, stopping) {
  return async (ctx) => {
    if (does.fail !== undefined) {
      const { error_code: code, message, retryable, retry_delay_ms: retryDelayMs } = does.fail;
      throw new Failure(code, message, { retryable, retryDelayMs });
    }
    if (does.step !== undefined) {
      const value = await ctx.step(does.step, () => {
        seen.steps += 1;
        return does.value;
      });
      if (ctx.job.attempt === 1) throw new Failure(undefined, does.fails_first);
      return value;
    }
    if (does.checkpoint !== undefined) {
      if (ctx.job.checkpoint !== undefined) return ctx.job.checkpoint;
      ctx.progress(does.percent, does.message);
      await ctx.checkpoint(does.checkpoint);
      throw Failure.snooze(does.snooze_ms, does.reason);
    }
    if (does.wait_for_stop !== undefined) {
      ctx.progress(does.wait_for_stop);
      await new Promise((resolve) => ctx.signal.addEventListener("abort", resolve));
      seen.stops[ctx.job.job_id] = ctx.stopReason;
      ctx.check();
    }
    if (does.complete_after_stop !== undefined) {
      await stopping;
      return does.complete_after_stop;
    }
    return does.complete;
  };
}
