// A worker for the live tests: `worker.mjs TYPE WORK_MS`. It uses the installed package.

import { randomUUID } from "node:crypto";
import { Worker } from "mainspring";

const [kind, workMs] = [process.argv[2], Number(process.argv[3])];
const options = { concurrency: 8, leaseMs: 1_000, waitMs: 2_000, drainGraceMs: 3_000, stopGraceMs: 300 };
const worker = new Worker(undefined, options);
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

worker.task(kind, async (ctx) => {
  const once = await ctx.step("once", () => ({ by: process.pid, at: randomUUID() }));
  if (ctx.payload.stubborn) ctx.progress(1);
  await sleep(ctx.payload.stubborn ? 60_000 : workMs);
  ctx.check();
  return { n: ctx.payload.n, once };
});

console.log(JSON.stringify(await worker.run()));
// A handler that was given up may still have a timer.
process.exit(0);
