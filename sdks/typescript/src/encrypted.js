// Calls over node:https, for servers whose certificate an authority of your own has signed: `fetch`
// cannot be told whom to trust.

import { Agent, request } from "node:https";

/** What `fetch` does, as far as this client needs it, trusting `authorities` (PEM) and nobody else. */
export function encrypted(authorities) {
  const agent = new Agent({ ca: authorities, keepAlive: true });
  return (url, { method, headers, body, signal }) =>
    new Promise((resolve, reject) => {
      // As `fetch`: the reason is the cause of the error.
      const fail = (cause) => reject(new TypeError(`fetch failed: ${cause.message}`, { cause }));
      const sent = request(url, { method, headers, agent, signal }, (answer) => {
        const parts = [];
        answer.on("data", (part) => parts.push(part));
        answer.on("error", fail);
        answer.on("end", () => {
          const status = answer.statusCode;
          resolve({
            status,
            ok: status >= 200 && status < 300,
            headers: { get: (name) => answer.headers[name] ?? null },
            text: async () => Buffer.concat(parts).toString("utf8"),
          });
        });
      });
      sent.on("error", fail);
      sent.end(body);
    });
}
