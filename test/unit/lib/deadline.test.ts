import { setImmediate as turn } from "node:timers/promises";
import { expect, test } from "vitest";
import { unlessAborted } from "../../../server/lib/deadline.ts";

test("a wait that was aborted before it began leaves no unhandled rejection", async () => {
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

test("an aborted wait ends with the signal's reason, any other with its promise", async () => {
  const controller = new AbortController();
  const wait = unlessAborted(new Promise(() => {}), controller.signal);
  controller.abort("enough");
  await expect(wait).rejects.toBe("enough");
  expect(await unlessAborted(Promise.resolve(7), new AbortController().signal)).toBe(7);
});
