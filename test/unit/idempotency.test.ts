import { describe, expect, test } from "vitest";
import { WireError } from "../../protocol/errors.ts";
import { errorsOf } from "../../protocol/method-errors.ts";
import { methods } from "../../protocol/methods.ts";
import { canonicalHash } from "../../server/lib/canonical-json.ts";
import type { Call } from "../../server/rpc/call.ts";
import { type EffectLookups, idempotency } from "../../server/rpc/idempotency.ts";
import { Database } from "../../server/store/database.ts";
import { IdempotencyStore } from "../../server/store/idempotency.ts";
import { paramNames, rows, under } from "../helpers/policies.ts";

const call = { signal: new AbortController().signal };
const params = { sessionId: "s", idempotencyKey: "k" };

type Act = (params: object, call: Call) => Promise<{ aborted: boolean }>;
type Wrapped = (params: object, call?: Call) => Promise<unknown>;
type IsKnown = EffectLookups["session"];

const lookupsBy = (isKnown: IsKnown): EffectLookups => ({ session: isKnown, prompt: isKnown });

/** A method whose effect has no id, or one that `isKnown` finds by its id. */
function wrapped(store: IdempotencyStore, act: Act, isKnown?: IsKnown): Wrapped {
  const policy = idempotency({ store, lookups: lookupsBy(isKnown ?? (() => false)) });
  const handler = under(policy, methodOf(isKnown), act);
  return async (given, own = call) => await handler(given, own);
}

const methodOf = (isKnown: IsKnown | undefined) => (isKnown === undefined ? "session/bash" : "session/create");

const kindOf = (attempt: Promise<unknown>): Promise<string> =>
  attempt.then(
    () => "success",
    (error: WireError) => error.kind,
  );

const newStore = () => new IdempotencyStore(new Database(":memory:", () => {}));

test("a call with an idempotency key happens once: while it runs, afterwards and after a restart", async () => {
  const store = newStore();
  let calls = 0;
  const act = async () => ({ aborted: calls++ === 0 });
  const first = wrapped(store, act);
  expect(await Promise.all([first(params), first(params)])).toEqual([{ aborted: true }, { aborted: true }]);
  expect(await first({ idempotencyKey: "k", sessionId: "s" })).toEqual({ aborted: true });
  const afterRestart = wrapped(store, act);
  expect(await afterRestart(params)).toEqual({ aborted: true });
  expect(calls).toBe(1);
  await expect(afterRestart({ ...params, sessionId: "other" })).rejects.toMatchObject({ kind: "conflict" });
  await expect(first({ ...params, sessionId: "other" })).rejects.toMatchObject({ kind: "conflict" });
});

test("a failed call may be repeated, and one without a key always runs", async () => {
  const store = newStore();
  let calls = 0;
  const flaky = wrapped(store, async () => {
    calls += 1;
    if (calls === 1) throw new Error("once");
    return { aborted: true };
  });
  await expect(flaky(params)).rejects.toThrow("once");
  expect(await flaky(params)).toEqual({ aborted: true });
  await flaky({ sessionId: "s" });
  await flaky({ sessionId: "s" });
  expect(calls).toBe(4);
  expect(await kindOf(flaky({ sessionId: "t", idempotencyKey: "k" }))).toBe("conflict");
});

test("a secret param is not part of the stored hash, so that it can neither be found out nor make a conflict", async () => {
  const store = newStore();
  const hashes: string[] = [];
  const begin = store.begin.bind(store);
  store.begin = async (method, key, begun) => {
    hashes.push(begun.paramsHash);
    await begin(method, key, begun);
  };
  const create = wrapped(
    store,
    async () => ({ aborted: false }),
    () => true,
  );
  const given = (value: string, key: string) => ({
    ...{ cwd: "/", idempotencyKey: key, environment: { KEY: value } },
    mcpServers: [{ name: "m", command: "c", env: { KEY: value } }],
  });
  await create(given("one", "k"));
  expect(await create(given("other", "k"))).toEqual({ aborted: false });
  expect(hashes).toEqual([canonicalHash({ cwd: "/", idempotencyKey: "k" })]);
});

test("an effect has the id that its call chose, and the key of a call that found it taken is free again", async () => {
  const store = newStore();
  const ids: unknown[] = [];
  let isTaken = true;
  const create = wrapped(
    store,
    async (_params, { effect }) => {
      ids.push([effect?.id, effect?.isRepeated]);
      if (isTaken) throw new WireError("conflict", "There is a session with this id.");
      return { aborted: false };
    },
    () => true,
  );
  const given = { cwd: "/", sessionId: "mine", idempotencyKey: "k" };
  expect(await kindOf(create(given))).toBe("conflict");
  expect(store.get("session/create", "k")).toBeUndefined();
  isTaken = false;
  await create(given);
  expect(ids).toEqual([
    ["mine", false],
    ["mine", false],
  ]);
});

test("a call that does not know whether it had its effect keeps its key, so that it is not repeated", async () => {
  let calls = 0;
  const lost = wrapped(newStore(), async () => {
    calls += 1;
    throw new WireError("outcome_unknown", "Its pi has ended.");
  });
  expect([await kindOf(lost(params)), await kindOf(lost(params))]).toEqual(["outcome_unknown", "outcome_unknown"]);
  expect(calls).toBe(1);
});

test("the key is on disk before the effect, and a daemon that ends in between leaves an unknown outcome", async () => {
  const store = newStore();
  const seen: unknown[] = [];
  const killed = wrapped(store, () => {
    seen.push(store.get(methodOf(undefined), "k"));
    return new Promise(() => {});
  });
  void killed(params);
  await expect.poll(() => seen).toMatchObject([{ paramsHash: expect.any(String) }]);
  const next = wrapped(store, async () => ({ aborted: true }));
  expect(await kindOf(next(params))).toBe("outcome_unknown");
  expect(await kindOf(next({ ...params, sessionId: "t" }))).toBe("conflict");
});

test("an effect with an id is looked up by that id, and has the same id on the next daemon", async () => {
  const store = newStore();
  const effects = new Map<string, number>();
  const isKnown: IsKnown = (id) => effects.has(id);
  const effect = (id: string | undefined) => effects.set(id as string, (effects.get(id as string) ?? 0) + 1);
  const dying = wrapped(
    store,
    async (_params, own) => {
      effect(own.effect?.id);
      throw new Error("the child ended");
    },
    isKnown,
  );
  await expect(dying(params)).rejects.toThrow("the child ended");
  const [id] = effects.keys();
  const asked: (string | undefined)[] = [];
  const next = wrapped(
    store,
    async (_params, own) => {
      asked.push(own.effect?.id);
      return { aborted: true };
    },
    isKnown,
  );
  expect(await next(params)).toEqual({ aborted: true });
  expect(asked).toEqual([id]);
});

test("a shared call is cancelled when the last of its callers has gone, and not before", async () => {
  const callers = [new AbortController(), new AbortController()];
  let signal: AbortSignal | undefined;
  const waiting = wrapped(newStore(), async (_params, own) => {
    signal = own.signal;
    return await new Promise((_resolve, reject) =>
      own.signal.addEventListener("abort", () => reject(own.signal.reason)),
    );
  });
  const calls = callers.map((caller) => waiting(params, { signal: caller.signal }).catch((error) => error.message));
  await expect.poll(() => signal).toBeDefined();
  callers[0]?.abort(new Error("first"));
  expect(signal?.aborted).toBe(false);
  callers[1]?.abort(new Error("second"));
  expect(await Promise.all(calls)).toEqual(["second", "second"]);
});

/** Calls that end when their signal is aborted, each when `finish` allows it. */
function abandonable(first: (own: Call) => Promise<{ aborted: boolean }>, isKnown?: IsKnown) {
  const made: Call[] = [];
  const act: Act = async (_params, own) => {
    made.push(own);
    return made.length === 1 ? await first(own) : { aborted: true };
  };
  const handler = wrapped(newStore(), act, isKnown);
  const caller = new AbortController();
  const left = kindOf(handler(params, { signal: caller.signal }));
  const leave = async (): Promise<void> => {
    await expect.poll(() => made.length).toBe(1);
    caller.abort(new WireError("cancelled", "gone"));
  };
  return { made, left, leave, handler };
}

const aborted = ({ signal }: Call) => new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));

test("a caller that joins after all have left a shared call waits for its end, and repeats it if it had no effect", async () => {
  const end = Promise.withResolvers<void>();
  const { made, left, leave, handler } = abandonable(
    async (own) => {
      await aborted(own);
      await end.promise;
      throw own.signal.reason;
    },
    () => false,
  );
  await leave();
  const retries = [handler(params), handler(params)];
  expect(await kindOf(handler({ ...params, sessionId: "other" }))).toBe("conflict");
  const impatient = new AbortController();
  const given = handler(params, { signal: impatient.signal });
  impatient.abort(new WireError("cancelled", "gone, too"));
  expect(await kindOf(given)).toBe("cancelled");
  expect(made).toHaveLength(1);
  end.resolve();
  expect(await Promise.all([...retries, left])).toEqual([{ aborted: true }, { aborted: true }, "cancelled"]);
  expect(made).toHaveLength(2);
});

test("a caller that joins after all have left a shared call gets its result if it had its effect", async () => {
  const { made, left, leave, handler } = abandonable(async (own) => {
    await aborted(own);
    return { aborted: false };
  });
  await leave();
  expect(await handler(params)).toEqual({ aborted: false });
  expect([made.length, await left]).toEqual([1, "success"]);
});

test("an abandoned call without an answer is not repeated if its effect cannot be looked up", async () => {
  const { made, left, leave, handler } = abandonable(async (own) => {
    await aborted(own);
    throw own.signal.reason;
  });
  await leave();
  expect(await Promise.all([kindOf(handler(params)), left])).toEqual(["outcome_unknown", "cancelled"]);
  expect(await kindOf(handler(params))).toBe("outcome_unknown");
  expect(made).toHaveLength(1);
});

describe("every method of the table", () => {
  const keyed = rows.filter(([, { retry, key }]) => retry === "keyed" && key === undefined);

  test("takes an idempotency key if its row is keyed by one, and otherwise has no such param", () => {
    const takes = rows.filter(([, row]) => paramNames(row).includes("idempotencyKey"));
    expect(takes.map(([name]) => name)).toEqual(keyed.map(([name]) => name));
  });

  test("with a key runs once, and is asked again by a later daemon as its row says", async () => {
    for (const [name, { effect }] of keyed) {
      const store = newStore();
      const ids: (string | undefined)[] = [];
      const dying = under(idempotency({ store, lookups: lookupsBy(() => true) }), name, async (_params, own) => {
        await own.effect?.reserved;
        ids.push(own.effect?.id);
        await new Promise(() => {});
      });
      void dying(params, call);
      void dying(params, call);
      await expect.poll(() => ids.length).toBe(1);
      const later = under(idempotency({ store, lookups: lookupsBy(() => true) }), name, (_params, own) => {
        ids.push(own.effect?.id);
        return "done";
      });
      const again = await kindOf(Promise.resolve().then(() => later(params, call)));
      expect([name, again]).toEqual([name, effect === undefined ? "outcome_unknown" : "success"]);
      const others = await kindOf(Promise.resolve().then(() => later({ ...params, sessionId: "other" }, call)));
      const given = [again, others].filter((kind) => kind !== "success");
      expect([name, errorsOf(methods[name])]).toEqual([name, expect.arrayContaining(given)]);
      if (effect !== undefined) expect([name, ids[1]]).toEqual([name, ids[0]]);
    }
  });
});
