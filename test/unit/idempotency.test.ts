import { expect, test } from "vitest";
import type { WireError } from "../../protocol/errors.ts";
import type { Handlers } from "../../server/rpc/call.ts";
import { idempotent } from "../../server/rpc/idempotency.ts";
import { Database } from "../../server/store/database.ts";
import { IdempotencyStore } from "../../server/store/idempotency.ts";

const call = { signal: new AbortController().signal };

function wrapped(
  store: IdempotencyStore,
  abort: (params: object) => Promise<{ aborted: boolean }>,
): (params: object) => Promise<unknown> {
  const handlers = idempotent({ "session/abort": abort } as unknown as Handlers, store);
  return async (params) => await handlers["session/abort"](params as never, call);
}

test("a call with an idempotency key happens once, while it runs, afterwards and behind a restart", async () => {
  const store = new IdempotencyStore(new Database(":memory:", () => {}));
  let calls = 0;
  const act = async () => ({ aborted: calls++ === 0 });
  const first = wrapped(store, act);
  const params = { sessionId: "s", idempotencyKey: "k" };
  expect(await Promise.all([first(params), first(params)])).toEqual([{ aborted: true }, { aborted: true }]);
  expect(await first({ idempotencyKey: "k", sessionId: "s" })).toEqual({ aborted: true });
  const afterRestart = wrapped(store, act);
  expect(await afterRestart(params)).toEqual({ aborted: true });
  expect(calls).toBe(1);
  await expect(afterRestart({ ...params, sessionId: "other" })).rejects.toMatchObject({ kind: "conflict" });
  await expect(first({ ...params, sessionId: "other" })).rejects.toMatchObject({ kind: "conflict" });
});

test("a call that failed may be made again, and one without a key always happens", async () => {
  const store = new IdempotencyStore(new Database(":memory:", () => {}));
  let calls = 0;
  const flaky = wrapped(store, async () => {
    calls += 1;
    if (calls === 1) throw new Error("once");
    return { aborted: true };
  });
  const params = { sessionId: "s", idempotencyKey: "k" };
  await expect(flaky(params)).rejects.toThrow("once");
  expect(await flaky(params)).toEqual({ aborted: true });
  await flaky({ sessionId: "s" });
  await flaky({ sessionId: "s" });
  expect(calls).toBe(4);
  const conflict = await flaky({ sessionId: "t", idempotencyKey: "k" }).catch((error: WireError) => error.kind);
  expect(conflict).toBe("conflict");
});
