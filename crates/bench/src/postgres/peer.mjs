// graphile-worker under the loads of the PostgreSQL suite. It runs beside its installed packages:
//   node peer.mjs version
//   node peer.mjs <workload> <url> <jobs>
// and prints one line of JSON. What is timed comes after a warm-up.

import { readFileSync } from "node:fs";
import { makeWorkerUtils, run } from "graphile-worker";
import pg from "pg";

const [workload, url, count] = [process.argv[2], process.argv[3], Number(process.argv[4])];
const BATCH = 1000;
const PRODUCERS = 16;
const CONCURRENT = 24;
const RATE = 200;
const WARM_UP = 2000;
const BATCHING = { localQueue: { size: 500 }, completeJobBatchDelay: 0 };

const say = (line) => console.log(JSON.stringify(line));
if (workload === "version") {
  const { version } = JSON.parse(readFileSync("node_modules/graphile-worker/package.json"));
  say({ version, node: process.version });
  process.exit(0);
}

const pool = new pg.Pool({ connectionString: url, max: PRODUCERS });
const lost = (error) => console.error(error.message);
pool.on("error", lost);
pool.on("connect", (client) => client.on("error", lost));
const log = console.error;
const logger = { error: log, warn: log, info() {}, debug() {}, scope: () => logger };
const utils = await makeWorkerUtils({ pgPool: pool, logger });
await utils.migrate();

const seconds = (from) => (performance.now() - from) / 1000;
const sleep = (ms) => new Promise((wake) => setTimeout(wake, ms));

/** Exactly two hundred bytes of JSON, as every job of the suite. */
function payload(stamp = 0) {
  const start = `{"stamp":${stamp},"text":"`;
  return { stamp, text: "x".repeat(200 - start.length - 2) };
}

async function addBatches(jobs) {
  const specs = Array.from({ length: BATCH }, () => ({ identifier: "bench", payload: payload() }));
  for (let added = 0; added < jobs; added += BATCH) await utils.addJobs(specs);
}

async function addSingles(jobs) {
  let left = jobs;
  const producer = async () => {
    while (left-- > 0) await utils.addJob("bench", payload());
  };
  await Promise.all(Array.from({ length: PRODUCERS }, producer));
}

async function start(settings, handler) {
  const worker = { connectionString: url, concurrentJobs: CONCURRENT, maxPoolSize: CONCURRENT + 2 };
  const preset = { worker: { ...worker, ...settings } };
  return run({ preset, taskList: { bench: handler }, noHandleSignals: true, logger });
}

async function isEmpty() {
  const { rows } = await pool.query("select 1 from graphile_worker._private_jobs limit 1");
  return rows.length === 0;
}

/** What the database would do by itself within a minute or two; the drain is faster after it. */
async function settle() {
  await pool.query("vacuum (analyze)");
  await pool.query("checkpoint");
}

/** Seconds from the first handler until nothing is left in the store. */
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

async function latency(jobs) {
  const seen = [];
  const runner = await start({}, async ({ stamp }) => {
    seen.push(performance.now() - stamp);
  });
  await sleep(500);
  const begin = performance.now();
  for (let n = 0; n < jobs; n++) {
    const wait = begin + (n * 1000) / RATE - performance.now();
    if (wait > 0) await sleep(wait);
    await utils.addJob("bench", payload(performance.now()));
  }
  while (seen.length < jobs) await sleep(5);
  await runner.stop();
  seen.sort((a, b) => a - b);
  const at = (share) => seen[Math.round(share * (seen.length - 1))];
  return { p50_ms: at(0.5), p99_ms: at(0.99) };
}

/** The rate of what `work` does with `count` jobs. */
async function timed(work) {
  const from = performance.now();
  await work(count);
  return { rate: count / seconds(from) };
}

async function drained(settings) {
  await addBatches(count);
  await settle();
  return { rate: count / (await drain(count, settings)) };
}

const workloads = {
  W1: () => timed(addBatches),
  W1s: () => timed(addSingles),
  W2: () => drained(BATCHING),
  W2s: () => drained({}),
  W3: () => latency(count),
};

await addBatches(WARM_UP);
await drain(WARM_UP, workload === "W2s" || workload === "W3" ? {} : BATCHING);
await settle();
say(await workloads[workload]());
await utils.release();
await pool.end();
