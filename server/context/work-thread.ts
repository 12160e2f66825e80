import { parentPort } from "node:worker_threads";
import { WireError } from "../../protocol/errors.ts";
import { perform } from "./perform.ts";
import type { ThreadAnswer, ThreadOrder } from "./worker-pool.ts";

// Entry point of a worker thread: one job, then it ends.

function answerTo({ work, maxParts }: ThreadOrder): ThreadAnswer {
  try {
    return { kind: "done", outcome: perform(work, maxParts) };
  } catch (error) {
    if (error instanceof WireError) {
      const { kind: name, message, data } = error;
      return { kind: "refused", name, message, data };
    }
    // The text of an unexpected error may quote the document.
    const { name, stack = "" } = error instanceof Error ? error : new Error();
    return { kind: "failed", name, frames: stack.split("\n").filter((line) => /^\s+at /.test(line)) };
  }
}

parentPort?.once("message", (order: ThreadOrder) => {
  const answer = answerTo(order);
  const bytes = answer.kind === "done" ? answer.outcome.bytes : undefined;
  // Small buffers share memory with others, so they are copied.
  const isWhole = bytes !== undefined && bytes.byteLength > 0 && bytes.byteLength === bytes.buffer.byteLength;
  parentPort?.postMessage(answer, isWhole ? [bytes.buffer as ArrayBuffer] : []);
});
