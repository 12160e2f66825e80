import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import { expect, test } from "vitest";
import { addCost } from "../../../../context/cost/cost.ts";
import type { OptimisationOptions } from "../../../../protocol/optimisation/options.ts";
import { resolveOptimisation } from "../../../../protocol/optimisation/resolve.ts";
import { unchecked } from "../../../helpers/partial.ts";
import { type FakeHost, fakeContext, fakeHost, fakeStatus } from "../fake-host.ts";

type Command = Parameters<ExtensionAPI["registerCommand"]>[1];

/** The part in a pi that keeps entries in memory. */
class Fixture {
  readonly entries: Readonly<Record<string, unknown>>[] = [];
  readonly commands = new Map<string, Command>();
  readonly shown: string[] = [];
  readonly #status = fakeStatus();
  readonly degraded = this.#status.reasons;
  readonly host: FakeHost;
  readonly ctx: ExtensionContext;
  options: OptimisationOptions;
  prices: Record<string, number> = { input: 1 };
  /** Whether the part's writes are lost. */
  isForgetful = false;
  #config: ReturnType<typeof resolveOptimisation>;

  constructor(options: OptimisationOptions, others: readonly string[] = []) {
    this.options = options;
    this.#config = resolveOptimisation(options);
    const room = this;
    const { sessionManager } = fakeContext();
    this.ctx = {
      get model() {
        return { provider: "p", id: "m", cost: room.prices };
      },
      ui: { notify: (text: string) => void this.shown.push(text) },
      sessionManager: { ...sessionManager, getEntries: () => [...this.entries] },
    } as unknown as ExtensionContext;
    this.host = fakeHost(this.ctx);
    const pi = {
      appendEntry: (customType: string, data: unknown) => {
        if (!this.isForgetful) this.add({ type: "custom", customType, data });
      },
      registerCommand: (name: string, command: Command) => void this.commands.set(name, command),
      getCommands: () => others.map((name) => ({ name })),
      events: {
        emit: () => {
          throw new Error("a listener failed");
        },
      },
    } as unknown as ExtensionAPI;
    const { notify, fault } = this.host;
    addCost(this.host, { pi, config: () => this.#config.cost, status: this.#status, notify, fault });
  }

  configure(options: OptimisationOptions): void {
    this.#config = resolveOptimisation(options);
  }

  add(entry: object): void {
    const at = this.entries.length;
    this.entries.push({ id: `e${at}`, timestamp: new Date(at * 1_000).toISOString(), ...entry });
  }

  spend(usd: number): void {
    const usage = { input: 1, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 1, cost: { total: usd } };
    this.add({ type: "message", message: { role: "assistant", provider: "p", model: "m", stopReason: "stop", usage } });
  }

  settle(): void {
    this.host.emit("agent_settled", {});
  }

  async say(text: string): Promise<string | undefined> {
    await this.commands.get("cost")?.handler(text, unchecked(this.ctx));
    return this.shown.at(-1);
  }

  told(name: string): unknown[] {
    return this.host.notices.filter((notice) => notice.name === name).map(({ data }) => data);
  }
}

test("a listener of pi's bus that throws is reported, and the checkpoint is still published", () => {
  const room = new Fixture({ cost: { enabled: true } });
  room.spend(1);
  room.settle();
  expect(room.told("cost/checkpointed")).toMatchObject([{ event: { label: "run", cumulativeCost: 1 } }]);
  expect(room.host.faults).toMatchObject([{ where: "cost_checkpoint" }]);
});

test("a run without costs writes no checkpoint, and neither does a disabled part", () => {
  const room = new Fixture({ cost: { enabled: true } });
  room.settle();
  expect(room.entries).toEqual([]);
  room.spend(1);
  room.configure({});
  room.settle();
  expect(room.entries).toHaveLength(1);
  expect(room.told("cost/checkpointed")).toEqual([]);
});

test("a budget is reported at four fifths and at its end, once each, also when it is configured later", () => {
  const room = new Fixture({ cost: { enabled: true, autoCheckpoint: "off" } });
  room.spend(0.85);
  room.settle();
  room.configure({ cost: { budgetUsd: 1, autoCheckpoint: "off" } });
  for (const _ of [1, 2]) room.settle();
  room.spend(0.2);
  for (const _ of [1, 2]) room.settle();
  const told = room.told("cost/budgetReached") as { level: string; spentUsd: number }[];
  expect(told.map(({ level, spentUsd }) => [level, spentUsd])).toEqual([
    ["warning", 0.85],
    ["spent", 1.05],
  ]);
});

test("a budget is reported once in a life if its entry cannot be stored", () => {
  const room = new Fixture({ cost: { enabled: true, autoCheckpoint: "off", budgetUsd: 1 } });
  room.isForgetful = true;
  room.spend(2);
  for (const _ of [1, 2, 3]) room.settle();
  expect(room.told("cost/budgetReached")).toHaveLength(1);
});

test("open phases with the same label are each reported once, whichever of them has a budget", async () => {
  const room = new Fixture({ cost: { enabled: true, autoCheckpoint: "off" } });
  for (const text of ["start x $1", "start x", "start x $1"]) await room.say(text);
  room.spend(0.9);
  for (const _ of [1, 2]) room.settle();
  room.spend(1);
  for (const _ of [1, 2, 3]) room.settle();
  const told = room.told("cost/budgetReached") as { level: string }[];
  expect(told.map(({ level }) => level)).toEqual(["warning", "warning", "spent", "spent"]);
});

test("a model without prices is reported if there is a budget, and refuses another", async () => {
  const room = new Fixture({ cost: { budgetUsd: 1 } });
  expect(room.degraded).toEqual([]);
  room.prices = { input: 0 };
  room.host.emit("model_select", {});
  expect(room.degraded).toEqual(["price_unknown: The model p/m has no prices, so a budget in USD cannot be enforced."]);
  expect(await room.say("budget 2")).toBe("The model p/m has no prices, so a budget in USD cannot be enforced.");
  expect(room.entries).toEqual([]);
});

test.for([
  ["start", "A label has 1 to 120 characters, and is not blank."],
  [`checkpoint ${"x".repeat(121)}`, "A label has 1 to 120 characters, and is not blank."],
  ["end", "No phase is open."],
  ["end discuss", 'No phase "discuss" is open.'],
  ["start a $0", "A budget is more than 0 and at most 1000000 USD."],
  ["budget 0", "A budget is more than 0 and at most 1000000 USD."],
  ["budget much", "Usage: /cost, "],
  ["dance", "Usage: /cost, "],
] as const)("/cost %s is refused in words", async ([text, words]) => {
  const room = new Fixture({ cost: { enabled: true } });
  expect(await room.say(text)).toContain(words);
  expect(room.entries).toEqual([]);
});

test("/cost reports the costs, and begins and ends phases whose names have spaces and numbers", async () => {
  const room = new Fixture({ cost: { enabled: true } });
  expect(await room.say("start slice 3")).toBe("Phase slice 3 started.");
  expect(await room.say("start inner $2 stop")).toBe("Phase slice 3 › inner started.");
  room.spend(0.5);
  expect(await room.say("")).toBe(
    "$0.5000 for 1 tokens.\nassistant: $0.5000\nPhase slice 3: $0.5000\nPhase slice 3 › inner: $0.5000\nBudget of inner: $0.5000 of $2.00",
  );
  expect(await room.say("end slice 3")).toBe("Phase slice 3 has cost $0.5000.");
  expect(await room.say("budget $3 stop")).toBe("The session may cost $3.00; $0.5000 is spent.");
  expect(await room.say("budget none")).toBe("The session has no budget.");
  for (let at = 0; at < 32; at++) await room.say("start deep");
  expect(await room.say("start deeper")).toBe("32 phases are open; end one first.");
});

test("a label's length is counted in characters, and the checkpoint before its phase cuts none in two", async () => {
  const room = new Fixture({ cost: { enabled: true } });
  room.spend(1);
  expect(await room.say(`start ${"🙂".repeat(120)}`)).toContain("started.");
  expect(room.told("cost/checkpointed")).toMatchObject([{ event: { label: `before ${"🙂".repeat(113)}` } }]);
  expect(await room.say(`start ${"🙂".repeat(121)}`)).toContain("A label has 1 to 120 characters");
});

test("the command is renamed if another extension has one of its name", () => {
  expect([...new Fixture({ cost: { enabled: true } }, ["context"]).commands.keys()]).toEqual(["cost"]);
  for (const name of ["cost", "cost:1"]) {
    expect([...new Fixture({ cost: { enabled: true } }, [name]).commands.keys()]).toEqual([]);
  }
});
