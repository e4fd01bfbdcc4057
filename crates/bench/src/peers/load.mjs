// The loads of the peers' table, the same for every peer that is driven from Node. A peer's script
// says how its system adds and works off jobs, and hands that to `measure`. It is called as
//   node peer.mjs version
//   node peer.mjs <workload> <address> <jobs>
// and prints one line of JSON. What is timed comes after a warm-up.

import { readFileSync } from "node:fs";

export const BATCH = 1000;
export const CONCURRENT = 24;
const PRODUCERS = 16;
const RATE = 200;
const WARM_UP = 2000;

export const address = process.argv[3];

export const seconds = (from) => (performance.now() - from) / 1000;
export const sleep = (ms) => new Promise((wake) => setTimeout(wake, ms));
const say = (line) => console.log(JSON.stringify(line));

/** Says what runs, if that was asked. */
export function tellVersion(name) {
  if (process.argv[2] !== "version") return;
  const { version } = JSON.parse(readFileSync(`node_modules/${name}/package.json`));
  say({ version, node: process.version });
  process.exit(0);
}

/** Exactly two hundred bytes of JSON, as every job of the suite. */
export function payload(stamp = 0) {
  const start = `{"stamp":${stamp},"text":"`;
  return { stamp, text: "x".repeat(200 - start.length - 2) };
}

/** So many loops beside each other, until `step` says that it has nothing more. */
export async function beside(loops, step) {
  const loop = async () => {
    while (await step());
  };
  await Promise.all(Array.from({ length: loops }, loop));
}

async function batches(peer, jobs) {
  for (let added = 0; added < jobs; added += BATCH) await peer.addBatch();
}

async function singles(peer, jobs) {
  let left = jobs;
  await beside(PRODUCERS, async () => {
    if (left-- <= 0) return false;
    await peer.add(payload());
    return true;
  });
}

/** Milliseconds from the moment a job is added to the start of its handler. */
async function latency(peer, jobs) {
  const seen = [];
  const stop = await peer.listen((stamp) => seen.push(performance.now() - stamp));
  await sleep(500);
  const begin = performance.now();
  for (let n = 0; n < jobs; n++) {
    const wait = begin + (n * 1000) / RATE - performance.now();
    if (wait > 0) await sleep(wait);
    await peer.add(payload(performance.now()));
  }
  while (seen.length < jobs) await sleep(5);
  await stop();
  seen.sort((a, b) => a - b);
  const at = (share) => seen[Math.round(share * (seen.length - 1))];
  return { p50_ms: at(0.5), p99_ms: at(0.99) };
}

/**
 * Takes the one figure that the command line names. `peer` has `add` and, as far as its system can,
 * `addBatch`, `drain` and `drainSingles` (seconds from the first handler until nothing is left),
 * `listen` and `settle`.
 */
export async function measure(peer) {
  const [workload, count] = [process.argv[2], Number(process.argv[4])];
  const settle = peer.settle ?? (async () => {});
  const filled = peer.addBatch ? batches : singles;
  const timed = async (work) => {
    const from = performance.now();
    await work(peer, count);
    return { rate: count / seconds(from) };
  };
  const drained = async (drain) => {
    await filled(peer, count);
    await settle();
    return { rate: count / (await drain(count)) };
  };
  const workloads = {
    W1: peer.addBatch && (() => timed(batches)),
    W1s: () => timed(singles),
    W2: peer.drain && (() => drained(peer.drain)),
    W2s: peer.drainSingles && (() => drained(peer.drainSingles)),
    W3: () => latency(peer, count),
  };
  if (!workloads[workload]) {
    say({ absent: true });
    process.exit(0);
  }
  await filled(peer, WARM_UP);
  const isSingle = workload === "W2s" || workload === "W3";
  const warm = (isSingle && peer.drainSingles) || peer.drain;
  if (warm) await warm(WARM_UP);
  await settle();
  say(await workloads[workload]());
  await peer.close();
  process.exit(0);
}
