// graphile-worker, on PostgreSQL.

import { makeWorkerUtils, run } from "graphile-worker";
import pg from "pg";
import { address, BATCH, CONCURRENT, measure, payload, seconds, sleep, tellVersion } from "./load.mjs";

tellVersion("graphile-worker");

const pool = new pg.Pool({ connectionString: address, max: 16 });
const lost = (error) => console.error(error.message);
pool.on("error", lost);
pool.on("connect", (client) => client.on("error", lost));
const log = console.error;
const logger = { error: log, warn: log, info() {}, debug() {}, scope: () => logger };
const utils = await makeWorkerUtils({ pgPool: pool, logger });
await utils.migrate();

async function start(settings, handler) {
  const worker = { connectionString: address, concurrentJobs: CONCURRENT, maxPoolSize: CONCURRENT + 2 };
  const preset = { worker: { ...worker, ...settings } };
  return run({ preset, taskList: { bench: handler }, noHandleSignals: true, logger });
}

async function isEmpty() {
  const { rows } = await pool.query("select 1 from graphile_worker._private_jobs limit 1");
  return rows.length === 0;
}

async function drain(jobs, settings) {
  let [seen, first] = [0, 0];
  const runner = await start(settings, async () => {
    if (seen++ === 0) first = performance.now();
  });
  while (seen < jobs || !(await isEmpty())) await sleep(2);
  const taken = seconds(first);
  await runner.stop();
  return taken;
}

const specs = Array.from({ length: BATCH }, () => ({ identifier: "bench", payload: payload() }));

await measure({
  add: (job) => utils.addJob("bench", job),
  addBatch: () => utils.addJobs(specs),
  drain: (jobs) => drain(jobs, { localQueue: { size: 500 }, completeJobBatchDelay: 0 }),
  drainSingles: (jobs) => drain(jobs, {}),
  async listen(seen) {
    const runner = await start({}, async ({ stamp }) => seen(stamp));
    return () => runner.stop();
  },
  // What the database would do by itself within a minute or two; the drain is faster after it.
  async settle() {
    await pool.query("vacuum (analyze)");
    await pool.query("checkpoint");
  },
  async close() {
    await utils.release();
    await pool.end();
  },
});
