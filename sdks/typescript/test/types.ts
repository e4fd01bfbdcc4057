// Compiled, never run: the types as somebody who writes a worker uses them.

import { Client, Failure, Refused, StopReason, Worker, wish } from "mainspring";
import type { Job, Page, Summary } from "mainspring";

export async function example(): Promise<Summary> {
  const client = new Client({ url: "http://127.0.0.1:7070" });
  const job: Job = await client.submit("send_mail", { to: "ann" }, { idempotencyKey: "k", waitMs: 10 });
  const page: Page<Job> = await client.jobs({ status: job.status, limit: 1 });
  const batch = await client.submitBatch([wish("send_mail", page.items.length)]);
  const first: string | undefined = batch.items[0]?.error?.code;
  try {
    await client.cancel(job.job_id, first);
  } catch (error) {
    if (error instanceof Refused && error.isRetryable) console.log(error.status, error.code);
  }
  const worker = new Worker(client, { concurrency: 8, leaseMs: 30_000 });
  worker.task("send_mail", async (ctx) => {
    const receipt: number = await ctx.step("send", async () => 7);
    ctx.progress(50);
    await fetch("http://127.0.0.1", { signal: ctx.signal });
    if (ctx.stopReason === StopReason.CANCELLED) ctx.check();
    if (receipt === 0) throw Failure.permanent("NO_RECEIPT", "nothing came");
    // @ts-expect-error a job has no such field
    ctx.job.nonsense;
    return { receipt, attempt: ctx.job.attempt };
  });
  // @ts-expect-error a type is named by text
  worker.task(7, () => {});
  return worker.run({ signals: ["SIGTERM"] });
}
