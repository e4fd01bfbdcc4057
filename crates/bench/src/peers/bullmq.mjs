// BullMQ, on Redis. Whether that syncs before it answers is up to the server that the address leads to.

import { Queue, Worker } from "bullmq";
import { address, BATCH, measure, payload, seconds, tellVersion } from "./load.mjs";

tellVersion("bullmq");

const { hostname: host, port } = new URL(address);
const connection = { host, port: Number(port), maxRetriesPerRequest: null };
const queue = new Queue("bench", { connection });
const opts = { attempts: 3, removeOnComplete: true };
const batch = Array.from({ length: BATCH }, () => ({ name: "job", data: payload(), opts }));

function work(concurrency, handler) {
  return new Worker("bench", handler, { connection, concurrency });
}

async function drain(jobs, concurrency) {
  let [ended, first] = [0, 0];
  const worker = work(concurrency, async () => {
    if (first === 0) first = performance.now();
  });
  const taken = await new Promise((done) => {
    worker.on("completed", () => {
      if (++ended === jobs) done(seconds(first));
    });
  });
  await worker.close();
  return taken;
}

await measure({
  add: (job) => queue.add("job", job, opts),
  addBatch: () => queue.addBulk(batch),
  drain: (jobs) => drain(jobs, 100),
  drainSingles: (jobs) => drain(jobs, 16),
  async listen(seen) {
    const worker = work(2, async (job) => seen(job.data.stamp));
    await worker.waitUntilReady();
    return () => worker.close();
  },
  close: () => queue.close(),
});
