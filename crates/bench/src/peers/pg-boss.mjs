// pg-boss, on PostgreSQL.

import pg from "pg";
import { PgBoss } from "pg-boss";
import { address, BATCH, beside, CONCURRENT, measure, payload, seconds, sleep, tellVersion } from "./load.mjs";

tellVersion("pg-boss");

const QUEUE = "bench";
const boss = new PgBoss({ connectionString: address, max: CONCURRENT + 2, useListenNotify: true });
boss.on("error", (error) => console.error(error.message));
await boss.start();
// Without `notify` a waiting worker polls twice a second at best.
await boss.createQueue(QUEUE, { retryLimit: 3, notify: true });
const pool = new pg.Pool({ connectionString: address, max: 2 });

/** Starts two loops that fetch so many at a time, and go on without delay while batches are full. */
async function start(batchSize, handler) {
  const options = { batchSize, pollingIntervalSeconds: 0.5, burstWhenBatchFull: batchSize > 1 };
  for (let n = 0; n < 2; n++) await boss.work(QUEUE, options, handler);
}

async function isEmpty() {
  const open = "select 1 from pgboss.job where name = $1 and state < 'completed' limit 1";
  const { rows } = await pool.query(open, [QUEUE]);
  return rows.length === 0;
}

const batch = Array.from({ length: BATCH }, () => ({ data: payload() }));

await measure({
  add: (job) => boss.send(QUEUE, job),
  addBatch: () => boss.insert(QUEUE, batch),
  async drain(jobs) {
    let [seen, first] = [0, 0];
    await start(BATCH, async (fetched) => {
      if (seen === 0) first = performance.now();
      seen += fetched.length;
    });
    while (seen < jobs || !(await isEmpty())) await sleep(2);
    const taken = seconds(first);
    await boss.offWork(QUEUE);
    return taken;
  },
  // Its loops wait between single jobs, so these are its own calls, as often as they are answered.
  async drainSingles(jobs) {
    const first = performance.now();
    let left = jobs;
    await beside(CONCURRENT, async () => {
      const [job] = left > 0 ? await boss.fetch(QUEUE) : [];
      if (!job) return false;
      left -= 1;
      await boss.complete(QUEUE, job.id);
      return true;
    });
    return seconds(first);
  },
  async listen(seen) {
    await start(1, async ([job]) => seen(job.data.stamp));
    return () => boss.offWork(QUEUE);
  },
  // What the database would do by itself within a minute or two; the drain is faster after it.
  async settle() {
    await pool.query("vacuum (analyze)");
    await pool.query("checkpoint");
  },
  async close() {
    await pool.end();
    await boss.stop({ graceful: false });
  },
});
