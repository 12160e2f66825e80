import { expect, test } from "vitest";
import { answerWhenOpen } from "../../../client/dialogs.ts";
import { WireError } from "../../../protocol/errors.ts";

/** A daemon that refuses this many answers, each for this many milliseconds. */
function daemon(refusals: number, retryAfterMs: number) {
  let asked = 0;
  const refused = new WireError("dialog_reserved", "It is for another client first.", { retryAfterMs });
  return async (): Promise<number> => {
    asked += 1;
    if (asked <= refusals) throw refused;
    return asked;
  };
}

test("an answer to a dialog that is reserved for another client is sent again when others may answer", async () => {
  expect(await answerWhenOpen(daemon(2, 1))).toBe(3);
  // The notification that all may answer ends the wait, and is trusted once.
  const open = AbortSignal.abort();
  expect(await answerWhenOpen(daemon(1, 86_400_000), { open })).toBe(2);
  expect(await answerWhenOpen(daemon(2, 1), { open })).toBe(3);
});

test("a caller that has gone sends no further answer, and other refusals are not retried", async () => {
  const gone = AbortSignal.timeout(1);
  await expect(answerWhenOpen(daemon(1, 86_400_000), { signal: gone })).rejects.toMatchObject({ name: "TimeoutError" });
  const stale = new WireError("stale", "It has ended.");
  await expect(answerWhenOpen(() => Promise.reject(stale))).rejects.toBe(stale);
});
