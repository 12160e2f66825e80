import type { BoundaryState, ExtensionAPI } from "@earendil-works/pi-coding-agent";
import { expect, test } from "vitest";
import { createMode } from "../../../../context/pruning/mode.ts";
import type { Mode } from "../../../../context/pruning/pruning-services.ts";
import { defaultPruning, type PruningConfig } from "../../../../protocol/pruning/config.ts";
import { partial } from "../../../helpers/partial.ts";
import { fakeHost } from "../fake-host.ts";
import { Branch } from "./branch.ts";

/** A session's mode in successive processes. */
class Modes {
  readonly branch = new Branch();
  config: PruningConfig;
  off: string | undefined;
  #host = fakeHost(this.branch.context);
  mode: Mode;

  constructor(manualMode: Partial<PruningConfig["manualMode"]> = {}) {
    this.config = { ...defaultPruning, enabled: true, manualMode: { ...defaultPruning.manualMode, ...manualMode } };
    this.mode = this.begin();
  }

  begin(): Mode {
    this.#host = fakeHost(this.branch.context);
    const pi = partial<ExtensionAPI>({
      appendEntry: (customType: string, data: unknown) => void this.branch.add({ type: "custom", customType, data }),
    });
    this.mode = createMode({ ...this.#host, pi, pruning: () => this.config, off: () => this.off });
    return this.mode;
  }

  get now(): string {
    return this.mode.of(this.branch.context);
  }

  set(mode: "automatic" | "manual"): boolean {
    return this.mode.set(mode, this.branch.context);
  }

  boundary(takes = true): void {
    const state = partial<BoundaryState>({
      entries: [],
      continue: false,
      outcome: "completed",
      context: { contextEntries: [] },
    });
    const answer = this.#host.boundary.write({ hook: "turn_end", state, ctx: this.branch.context });
    const drafts = (answer as { entries: readonly object[] } | undefined)?.entries ?? [];
    if (takes) for (const draft of drafts) this.branch.add({ ...draft });
  }

  settle(): void {
    this.branch.isIdle = true;
    this.#host.emit("agent_settled", {});
  }

  /** The answer to a call of a tool that is blocked. */
  blocked(toolName = "compress"): string | undefined {
    const answers = this.#host.emit("tool_call", { toolName, input: {} }) as readonly (
      | { reason: string }
      | undefined
    )[];
    return answers.find((answer) => answer !== undefined)?.reason;
  }

  get records(): readonly unknown[] {
    return this.branch.entries.flatMap((entry) => (entry.type === "custom" ? [entry.data] : []));
  }
}

test("the mode comes from the configuration until it is set explicitly, and then stays", () => {
  const modes = new Modes({ enabled: true });
  expect(modes.now).toBe("manual");
  expect(modes.set("manual")).toBe(false);
  expect(modes.set("automatic")).toBe(true);
  expect(modes.now).toBe("automatic");
  modes.begin();
  expect(modes.now).toBe("automatic");
  expect(modes.records).toEqual([{ v: 1, mode: "automatic" }]);
});

test("a mode that is set in a run applies immediately, is written at the next boundary, and survives the process", () => {
  const modes = new Modes();
  modes.branch.user("Go on.");
  modes.branch.isIdle = false;
  expect(modes.set("manual")).toBe(true);
  expect(modes.now).toBe("manual");
  expect(modes.records).toEqual([]);
  modes.boundary(false);
  modes.boundary();
  modes.boundary();
  modes.settle();
  expect(modes.records).toEqual([{ v: 1, mode: "manual" }]);
  modes.begin();
  expect(modes.now).toBe("manual");
});

test("it is written after the run if no boundary accepted it", () => {
  const modes = new Modes();
  modes.branch.user("Go on.");
  modes.branch.isIdle = false;
  modes.set("manual");
  modes.settle();
  expect(modes.records).toEqual([{ v: 1, mode: "manual" }]);
  modes.settle();
  expect(modes.records).toHaveLength(1);
});

test("a mode follows its branch, and an invalid mode is ignored", () => {
  const modes = new Modes();
  const first = modes.branch.user("Go on.");
  modes.set("manual");
  modes.branch.add({ type: "custom", customType: "pi-rpcd.pruning-mode", data: { v: 1, mode: "wild" } });
  modes.branch.add({ type: "custom", customType: "pi-rpcd.pruning-mode", data: null });
  const last = modes.branch.user("And now?");
  expect(modes.now).toBe("manual");
  modes.branch.go(first);
  expect(modes.now).toBe("automatic");
  modes.branch.go(last);
  expect(modes.now).toBe("manual");
});

test.for([
  { mode: "automatic", strict: false, reason: undefined },
  { mode: "automatic", strict: true, reason: undefined },
  { mode: "manual", strict: false, reason: undefined },
  { mode: "manual", strict: true, reason: "Compression waits for the user in manual mode." },
] as const)("in mode $mode, strict: $strict, a call of compress is told $reason", ({ mode, strict, reason }) => {
  const modes = new Modes({ enabled: mode === "manual", strict });
  expect(modes.blocked()).toBe(reason);
  expect(modes.blocked("read")).toBeUndefined();
});

test("the user grants one call, which expires when the run has settled", () => {
  const modes = new Modes({ enabled: true, strict: true });
  modes.mode.grant();
  expect(modes.blocked()).toBeUndefined();
  expect(modes.blocked()).toMatch("waits for the user");
  modes.mode.grant();
  modes.settle();
  expect(modes.blocked()).toMatch("waits for the user");
});

test("while pruning is off no call is blocked: another extension's tool may have the name", () => {
  const modes = new Modes({ enabled: true, strict: true });
  modes.off = "Another extension has a tool named compress.";
  expect(modes.blocked()).toBeUndefined();
});
