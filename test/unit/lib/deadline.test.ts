import { setImmediate as turn } from "node:timers/promises";
import { expect, test } from "vitest";
import { unlessAborted } from "../../../server/lib/deadline.ts";

test("a wait that was aborted before it began leaves no rejection that nobody handles", async () => {
  const unhandled: unknown[] = [];
  const note = (error: unknown): unknown => unhandled.push(error);
  process.on("unhandledRejection", note);
  try {
    const reason = new Error("gone");
    await expect(unlessAborted(Promise.reject(new Error("later")), AbortSignal.abort(reason))).rejects.toBe(reason);
    await turn();
    expect(unhandled).toEqual([]);
  } finally {
    process.off("unhandledRejection", note);
  }
});

test("a wait that is aborted ends with the signal's reason, one that is not with its promise", async () => {
  const controller = new AbortController();
  const wait = unlessAborted(new Promise(() => {}), controller.signal);
  controller.abort("enough");
  await expect(wait).rejects.toBe("enough");
  expect(await unlessAborted(Promise.resolve(7), new AbortController().signal)).toBe(7);
});
