import { expect, it } from "vitest";
import { WireError } from "../../../protocol/errors.ts";
import type { Call, Handlers } from "../../../server/rpc/call.ts";
import { Grant } from "../../../server/rpc/grant.ts";
import { rated } from "../../../server/rpc/rates.ts";

const limits = { windowMs: 10_000, maxStarts: 1, maxPrompts: 2, maxPushes: 3 };
const grant = (name: string) => new Grant({ name, capabilities: ["prompt"] });

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
    "delivery/push",
    "delivery/resend",
  ];
  const handlers = rated(Object.fromEntries(names.map((name) => [name, done])) as never, limits, () => clock.now);
  const ask = (method: string, whose?: Grant): unknown => {
    const call: Call = { signal: new AbortController().signal, grant: whose };
    try {
      return (handlers[method as keyof Handlers] as (params: object, call: Call) => unknown)({}, call);
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
