// A worker on the TypeScript SDK that does what the conformance check asks for.

import { setTimeout as sleep } from "node:timers/promises";
import { Failure, Worker } from "mainspring";

const options = { concurrency: 2, leaseMs: 3_000, waitMs: 5_000, drainGraceMs: 500, stopGraceMs: 500, log: () => {} };
const worker = new Worker(undefined, options);

worker.task("conformance", async (ctx) => {
  await sleep(ctx.payload.work_ms, undefined, { signal: ctx.signal });
  if (ctx.payload.fail) throw Failure.permanent(ctx.payload.fail);
  return ctx.payload.value;
});

await worker.run();
process.exit();
