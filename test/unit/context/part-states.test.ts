import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { expect, test } from "vitest";
import { PartStates } from "../../../context/parts/optimisation/part-states.ts";
import { resolveOptimisation } from "../../../protocol/optimisation/resolve.ts";
import { fakeHost } from "./fake-host.ts";

const ctx = {} as ExtensionContext;

function statesOf() {
  const host = fakeHost(ctx);
  const optimisation = resolveOptimisation({ masking: { enabled: true } });
  const told = () => host.notices.map(({ data }) => (data as { reason: string }).reason);
  const { notify, fault } = host;
  const states = new PartStates({ config: () => optimisation, notify, fault });
  return { states, masking: states.of("masking"), told };
}

test("alternating reasons are reported once each, and again after the part was restored", () => {
  const { states, masking, told } = statesOf();
  for (const reason of ["one", "two", "one", "two", "one"]) masking.degraded(reason);
  expect(told()).toEqual(["one", "two"]);
  expect(states.report("masking", ctx)).toMatchObject({ state: "degraded", reason: "one" });
  masking.restored();
  expect(states.report("masking", ctx).state).toBe("on");
  masking.degraded("one");
  expect(told()).toEqual(["one", "two", "one"]);
});

test("a part with a new reason each time is reported 32 times", () => {
  const { states, masking, told } = statesOf();
  for (let at = 0; at < 100; at += 1) masking.degraded(`reason ${at}`);
  expect(told()).toHaveLength(32);
  expect(states.report("masking", ctx)).toMatchObject({ state: "degraded", reason: "reason 31" });
});
