import { expect, it } from "vitest";
import { WireError } from "../../../protocol/errors.ts";
import type { Call, Handlers } from "../../../server/rpc/call.ts";
import { Grant } from "../../../server/rpc/grant.ts";
import { rated } from "../../../server/rpc/rates.ts";

const limits = { windowMs: 10_000, maxStarts: 1, maxPrompts: 2, maxPushes: 3 };
const grant = (name: string) => new Grant({ name, capabilities: ["prompt"] });
/** Those that what works inside a session's pi answers. */
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

function start() {
  const clock = { now: 0 };
  const done = () => "done";
  const names = [
    "session/create",
    "session/open",
    "session/prompt",
    "session/steer",
    "session/followUp",
    "session/list",
    "session/setModel",
    "session/subscribe",
    "session/compact",
    "model/list",
    "delivery/push",
    "delivery/resend",
    ...methodsOfParts,
    "optimisation/configure",
    "pruning/configure",
    "pruning/compress",
    "cost/report",
    "session/getStats",
    "pruning/inspect",
  ];
  const handlers = rated(
    Object.fromEntries(names.map((name) => [name, done])) as never,
    limits,
    (sessionId) => sessionId === "asleep",
    () => clock.now,
  );
  const ask = (method: string, whose?: Grant, params: object = {}): unknown => {
    const call: Call = { signal: new AbortController().signal, grant: whose };
    try {
      return (handlers[method as keyof Handlers] as (params: object, call: Call) => unknown)(params, call);
    } catch (error) {
      return error instanceof WireError ? [error.kind, error.data["retryAfterMs"]] : error;
    }
  };
  return { clock, ask };
}

it("what starts a pi is overloaded beyond its rate, and retryAfterMs is true", () => {
  const { clock, ask } = start();
  const whose = grant("a");
  expect(ask("session/create", whose)).toBe("done");
  clock.now = 4_000;
  expect(ask("session/create", whose)).toEqual(["overloaded", 6_000]);
  expect(ask("session/open", whose)).toEqual(["overloaded", 6_000]);
  clock.now = 10_000;
  expect(ask("session/open", whose)).toBe("done");
});

it("prompts have a rate of their own, all kinds together; what only reads has none", () => {
  const { ask } = start();
  const whose = grant("a");
  expect(ask("session/create", whose)).toBe("done");
  expect(["session/prompt", "session/steer"].map((method) => ask(method, whose))).toEqual(["done", "done"]);
  expect(ask("session/followUp", whose)).toEqual(["overloaded", 10_000]);
  expect(Array.from({ length: 9 }, () => ask("session/list", whose))).toEqual(Array(9).fill("done"));
});

it("pushes have a rate of their own, which is neither that of prompts nor another token's", () => {
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

it("one token's rate is not another's", () => {
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

it("a list of models that is asked for anew counts as a start, and a compaction as a prompt", () => {
  const { ask } = start();
  const whose = grant("a");
  expect(ask("model/list", whose, { refresh: true })).toBe("done");
  expect(ask("model/list", whose, { refresh: true })).toEqual(["overloaded", 10_000]);
  expect(ask("model/list", whose)).toBe("done");
  expect(["session/compact", "session/compact"].map((method) => ask(method, whose))).toEqual(["done", "done"]);
  expect(ask("session/compact", whose)).toEqual(["overloaded", 10_000]);
});

it.each(methodsOfParts)("%s counts as a start where its session has no pi, and else not", (method) => {
  const { ask } = start();
  const whose = grant("a");
  expect(ask(method, whose, { sessionId: "asleep" })).toBe("done");
  expect(ask(method, whose, { sessionId: "asleep" })).toEqual(["overloaded", 10_000]);
  expect(ask(method, whose, { sessionId: "awake" })).toBe("done");
});

it.each(["optimisation/configure", "pruning/configure", "cost/report", "session/getStats", "pruning/inspect"])(
  "%s starts no pi, and counts as none",
  (method) => {
    const { ask } = start();
    const whose = grant("a");
    expect([1, 2, 3].map(() => ask(method, whose, { sessionId: "asleep" }))).toEqual(["done", "done", "done"]);
  },
);

it("what has a model compress counts as a prompt, and wakes a session as one", () => {
  const { ask } = start();
  const [whose, others] = [grant("a"), grant("b")];
  const compress = (sessionId: string, by: Grant) => ask("pruning/compress", by, { sessionId });
  expect([compress("awake", whose), compress("awake", whose)]).toEqual(["done", "done"]);
  expect(compress("awake", whose)).toEqual(["overloaded", 10_000]);
  expect([compress("asleep", others), compress("asleep", others)]).toEqual(["done", ["overloaded", 10_000]]);
});
