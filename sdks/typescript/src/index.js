// Client and worker of Mainspring, the durable task scheduler.

export { Client, wish } from "./client.js";
export { Context, StopReason } from "./context.js";
export { Failure, MainspringError, Refused, Release, Stopped, Unreachable, Unreadable } from "./errors.js";
export { Worker } from "./worker.js";
