// Restate, as one node with the settings it comes with, in the folder that the address names. It has
// no call for many jobs, and hands each to its service at once: there is nothing to fill and drain.

import { spawn } from "node:child_process";
import { createServer } from "node:net";
import * as restate from "@restatedev/restate-sdk";
import * as clients from "@restatedev/restate-sdk-clients";
import { address, measure, sleep, tellVersion } from "./load.mjs";

tellVersion("@restatedev/restate-server");

async function freePort() {
  const server = createServer();
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  const { port } = server.address();
  await new Promise((gone) => server.close(gone));
  return port;
}

const [ingress, admin, node, service] = [await freePort(), await freePort(), await freePort(), await freePort()];
const settings = {
  RESTATE_BASE_DIR: address,
  RESTATE_LISTEN_MODE: "tcp",
  RESTATE_INGRESS__BIND_ADDRESS: `127.0.0.1:${ingress}`,
  RESTATE_ADMIN__BIND_ADDRESS: `127.0.0.1:${admin}`,
  RESTATE_BIND_ADDRESS: `127.0.0.1:${node}`,
  RESTATE_ADVERTISED_ADDRESS: `http://127.0.0.1:${node}`,
  RESTATE_DISABLE_TELEMETRY: "true",
  RUST_LOG: "error",
};
// The program itself: what npm links to starts it as a child, which would outlive us.
const program = `node_modules/@restatedev/restate-server-${process.platform}-${process.arch}/bin/restate-server`;
const server = spawn(program, ["--no-logo"], {
  env: { ...process.env, ...settings },
  stdio: "ignore",
});
process.on("exit", () => server.kill("SIGKILL"));

let onJob = () => {};
const bench = restate.service({
  name: "bench",
  handlers: { run: async (_context, job) => onJob(job.stamp) },
});
await restate.serve({ services: [bench], port: service });

const deadline = performance.now() + 60_000;
for (;;) {
  const registered = await fetch(`http://127.0.0.1:${admin}/deployments`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ uri: `http://127.0.0.1:${service}` }),
  }).catch(() => ({ ok: false }));
  if (registered.ok) break;
  if (performance.now() > deadline || server.exitCode !== null) throw new Error("Restate did not come up");
  await sleep(100);
}
const client = clients.connect({ url: `http://127.0.0.1:${ingress}` }).serviceSendClient({ name: "bench" });

await measure({
  add: (job) => client.run(job),
  async listen(seen) {
    onJob = seen;
    return () => {};
  },
  async close() {},
});
