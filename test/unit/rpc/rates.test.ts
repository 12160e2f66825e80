import { expect, it } from "vitest";
import { WireError } from "../../../protocol/errors.ts";
import type { RateClass } from "../../../protocol/method-row.ts";
import { isMethodName, type MethodName } from "../../../protocol/methods.ts";
import type { Call } from "../../../server/rpc/call.ts";
import { Grant } from "../../../server/rpc/grant.ts";
import { type RateLimits, rateLimit } from "../../../server/rpc/rates.ts";
import { paramNames, rows, under } from "../../helpers/policies.ts";

const limits: RateLimits = { windowMs: 10_000, maxStarts: 1, maxPrompts: 2, maxPushes: 3 };
const grant = (name: string) => new Grant({ name, capabilities: ["prompt"] });

/** Methods that a part inside the session's pi answers. */
const methodsOfParts = [
  "cost/checkpoint",
  "cost/startPhase",
  "cost/endPhase",
  "cost/setBudget",
  "pruning/export",
  "pruning/sweep",
  "pruning/setMode",
  "pruning/decompress",
  "pruning/recompress",
];

function start(limitsOf: RateLimits = limits) {
  const clock = { now: 0 };
  const policy = rateLimit({
    limits: limitsOf,
    isAsleep: (sessionId) => sessionId === "asleep",
    now: () => clock.now,
  });
  const ask = (method: string, whose?: Grant, params: object = {}): unknown => {
    if (!isMethodName(method)) throw new Error(`${method} is not a method`);
    const call: Call = { signal: new AbortController().signal, grant: whose };
    try {
      return under(policy, method, () => "done")(params, call);
    } catch (error) {
      return error instanceof WireError ? [error.kind, error.data["retryAfterMs"]] : error;
    }
  };
  return { clock, ask };
}

/** The second of two calls with the same token, where only this rate is limited to one call. */
function secondCall(rate: RateClass, method: MethodName, params: object): unknown {
  const many = { windowMs: 10_000, maxStarts: 99, maxPrompts: 99, maxPushes: 99 };
  const max = { starts: { maxStarts: 1 }, prompts: { maxPrompts: 1 }, pushes: { maxPushes: 1 } }[rate];
  const { ask } = start({ ...many, ...max });
  const whose = grant("a");
  ask(method, whose, params);
  return ask(method, whose, params);
}

const isOverloaded = (outcome: unknown) => outcome !== "done";

const given = (param: string | undefined) => (param === undefined ? {} : { [param]: true });

it("every method of the table counts towards the rate that its row names, and no other", () => {
  for (const [name, row] of rows) {
    const params = paramNames(row).includes("sessionId") ? { sessionId: "awake" } : {};
    const counted = (["starts", "prompts", "pushes"] as const).filter((rate) =>
      isOverloaded(secondCall(rate, name, params)),
    );
    expect([name, counted]).toEqual([name, row.rate === undefined ? [] : [row.rate]]);
  }
});

it("every method of the table counts as a start if it starts the pi of a session without one, as its row says", () => {
  for (const [name, row] of rows.filter(([, { rate }]) => rate !== "starts")) {
    const { asleep, wakesWith, startsWith } = row;
    const names = paramNames(row);
    if (names.includes("sessionId")) {
      const wakes = isOverloaded(secondCall("starts", name, { sessionId: "asleep", ...given(wakesWith) }));
      expect([name, wakes]).toEqual([name, asleep === "wake"]);
      const quiet = secondCall("starts", name, { sessionId: "asleep", ...(wakesWith && { [wakesWith]: false }) });
      if (wakesWith !== undefined) expect([name, quiet]).toEqual([name, "done"]);
    }
    expect([name, isOverloaded(secondCall("starts", name, given(startsWith)))]).toEqual([
      name,
      startsWith !== undefined,
    ]);
  }
});

it("a call that starts a pi is overloaded above its rate, and retryAfterMs is correct", () => {
  const { clock, ask } = start();
  const whose = grant("a");
  expect(ask("session/create", whose)).toBe("done");
  clock.now = 4_000;
  expect(ask("session/create", whose)).toEqual(["overloaded", 6_000]);
  expect(ask("session/open", whose)).toEqual(["overloaded", 6_000]);
  clock.now = 10_000;
  expect(ask("session/open", whose)).toBe("done");
});

it("prompts have their own rate, all kinds together; reading methods have none", () => {
  const { ask } = start();
  const whose = grant("a");
  expect(ask("session/create", whose)).toBe("done");
  expect(["session/prompt", "session/steer"].map((method) => ask(method, whose))).toEqual(["done", "done"]);
  expect(ask("session/followUp", whose)).toEqual(["overloaded", 10_000]);
  expect(Array.from({ length: 9 }, () => ask("session/list", whose))).toEqual(Array(9).fill("done"));
});

it("pushes have their own rate, separate from prompts and from other tokens", () => {
  const { clock, ask } = start();
  const [whose, others] = [grant("a"), grant("b")];
  expect(Array.from({ length: 4 }, () => ask("delivery/push", whose))).toEqual([
    "done",
    "done",
    "done",
    ["overloaded", 10_000],
  ]);
  expect([ask("session/prompt", whose), ask("delivery/resend", whose), ask("delivery/push", others)]).toEqual([
    "done",
    "done",
    "done",
  ]);
  expect(ask("delivery/resend", whose)).toEqual(["overloaded", 10_000]);
  clock.now = 10_000;
  expect(ask("delivery/push", whose)).toBe("done");
});

it("tokens have separate rates", () => {
  const { ask } = start();
  expect([ask("session/create", grant("a")), ask("session/create", grant("b")), ask("session/create")]).toEqual([
    "done",
    "done",
    "done",
  ]);
  expect(ask("session/create")).toEqual(["overloaded", 10_000]);
});

it.each([
  ["session/setModel", {}, {}],
  ["session/subscribe", { awake: true }, { awake: false }],
  ["session/prompt", {}, {}],
])("%s %o counts as a start where its session has no pi, and else not", (method, params, quiet) => {
  const { ask } = start();
  const whose = grant("a");
  const [asleep, awake] = [{ sessionId: "asleep" }, { sessionId: "awake" }];
  expect(ask(method, whose, { ...asleep, ...params })).toBe("done");
  expect(ask("session/setModel", whose, { ...asleep, ...params })).toEqual(["overloaded", 10_000]);
  expect(ask("session/setModel", whose, awake)).toBe("done");
  expect(ask("session/subscribe", whose, { ...asleep, awake: false })).toBe("done");
  expect(ask(method, whose, { ...awake, ...quiet })).toBe("done");
});

it("a refreshed list of models counts as a start, and a compaction as a prompt", () => {
  const { ask } = start();
  const whose = grant("a");
  expect(ask("model/list", whose, { refresh: true })).toBe("done");
  expect(ask("model/list", whose, { refresh: true })).toEqual(["overloaded", 10_000]);
  expect(ask("model/list", whose)).toBe("done");
  expect(["session/compact", "session/compact"].map((method) => ask(method, whose))).toEqual(["done", "done"]);
  expect(ask("session/compact", whose)).toEqual(["overloaded", 10_000]);
});

it.each(methodsOfParts)("%s counts as a start if its session has no pi, and otherwise not", (method) => {
  const { ask } = start();
  const whose = grant("a");
  expect(ask(method, whose, { sessionId: "asleep" })).toBe("done");
  expect(ask(method, whose, { sessionId: "asleep" })).toEqual(["overloaded", 10_000]);
  expect(ask(method, whose, { sessionId: "awake" })).toBe("done");
});

it.each(["optimisation/configure", "pruning/configure", "cost/report", "session/getStats", "pruning/inspect"])(
  "%s starts no pi, and does not count as a start",
  (method) => {
    const { ask } = start();
    const whose = grant("a");
    expect([1, 2, 3].map(() => ask(method, whose, { sessionId: "asleep" }))).toEqual(["done", "done", "done"]);
  },
);

it("a list of models that is only the known one counts as no start, whatever the session's state", () => {
  const { ask } = start();
  const whose = grant("a");
  const known = { sessionId: "asleep", cached: true };
  expect([1, 2, 3].map(() => ask("model/list", whose, known))).toEqual(["done", "done", "done"]);
});

it("a call that makes a model compress counts as a prompt, and wakes a session like one", () => {
  const { ask } = start();
  const [whose, others] = [grant("a"), grant("b")];
  const compress = (sessionId: string, by: Grant) => ask("pruning/compress", by, { sessionId });
  expect([compress("awake", whose), compress("awake", whose)]).toEqual(["done", "done"]);
  expect(compress("awake", whose)).toEqual(["overloaded", 10_000]);
  expect([compress("asleep", others), compress("asleep", others)]).toEqual(["done", ["overloaded", 10_000]]);
});
