// A server that answers as recorded and keeps what it did not expect.

import { readFileSync, readdirSync } from "node:fs";
import { createServer } from "node:http";
import { isDeepStrictEqual } from "node:util";

/** Where the recorded conversations are; a test of the packed package says it. */
const folder = process.env.MAINSPRING_TRANSCRIPTS ?? new URL("../../transcripts/", import.meta.url).pathname;

export function transcripts() {
  const names = readdirSync(folder).filter((name) => name.endsWith(".json"));
  return Object.fromEntries(
    names.sort().map((name) => [name.slice(0, -5), JSON.parse(readFileSync(`${folder}/${name}`, "utf8"))]),
  );
}

export class ReplayServer {
  unexpected = [];
  #answeredAt = performance.now();
  #watchers = [];
  #leaving = [];
  #hasLeft = false;

  static async start(transcript) {
    const replay = new ReplayServer();
    replay.left = [...transcript.exchanges];
    replay.server = createServer((request, response) => replay.#answer(request, response));
    await new Promise((resolve) => replay.server.listen(0, "127.0.0.1", resolve));
    replay.url = `http://127.0.0.1:${replay.server.address().port}`;
    return replay;
  }

  async #answer(request, response) {
    let text = "";
    for await (const part of request) text += part;
    const body = text === "" ? undefined : JSON.parse(text);
    const { method, url: path, headers } = request;
    const exchange = this.#match(method, path, headers, body);
    if (exchange === undefined) {
      this.unexpected.push([method, path, body]);
      const error = { code: "UNEXPECTED", message: `${method} ${path}`, retryable: false };
      this.#changed();
      this.#send(response, { status: 418, body: { success: false, error } });
      return;
    }
    this.left.splice(this.left.indexOf(exchange), 1);
    const early = (exchange.not_before_ms ?? 0) - (performance.now() - this.#answeredAt);
    if (early > 10) this.unexpected.push([method, path, `${early} ms too early`]);
    this.#changed();
    if (path.endsWith("/work/leave")) {
      this.#hasLeft = true;
      this.#leaving.forEach((go) => go());
    }
    if (exchange.hold && !this.#hasLeft) await new Promise((resolve) => this.#leaving.push(resolve));
    this.#answeredAt = performance.now();
    this.#send(response, exchange.answer);
  }

  #send(response, { status, headers, body }) {
    response.writeHead(status, { ...headers, "content-type": "application/json" });
    response.end(JSON.stringify(body));
  }

  #match(method, path, headers, body) {
    const exchange = this.left.find(({ request }) => request.method === method && request.path === path);
    if (exchange === undefined) return undefined;
    const { request, whatever = [] } = exchange;
    const ignored = Object.fromEntries(whatever.map((name) => [name, null]));
    const same =
      isDeepStrictEqual(request.body && { ...request.body, ...ignored }, body && { ...body, ...ignored }) &&
      Object.entries(request.headers ?? {}).every(([name, value]) => headers[name] === value);
    return same ? exchange : undefined;
  }

  #changed() {
    this.#watchers.splice(0).forEach((look) => look());
  }

  /** Waits until `probe` holds of what was said. */
  async until(probe) {
    while (!probe(this) && this.unexpected.length === 0) {
      await new Promise((resolve) => this.#watchers.push(resolve));
    }
  }

  close() {
    this.server.closeAllConnections();
    this.server.close();
  }
}
