import { expect, test } from "vitest";
import type { PartsConfig } from "../../../protocol/link.ts";
import type { Result } from "../../../protocol/methods.ts";
import type { OptimisationOptions } from "../../../protocol/optimisation/options.ts";
import { resolveOptimisation } from "../../../protocol/optimisation/resolve.ts";
import { answer, call } from "../../../provider/reply.ts";
import { type ScriptedProvider, startProvider } from "../../../provider/server.ts";
import { type Pi, startPi } from "../extension/driver.ts";

const apis = ["scripted", "scripted-anthropic"] as const;
const long = "Read this with care, for it is long and it will be asked about. ".repeat(150);

function partsOf(optimisation: OptimisationOptions): PartsConfig {
  return { optimisation: resolveOptimisation(optimisation), spillDirectory: "/nowhere", labels: {} };
}

interface Entry {
  readonly id: string;
  readonly type: string;
  readonly customType?: string;
  readonly data?: unknown;
  readonly message?: { readonly role: string };
}

/** One pi and its provider, whose cache has its own clock. */
class Conversation {
  readonly pi: Pi;
  readonly #provider: ScriptedProvider;
  readonly #clock: { shiftMs: number };
  #settled = 0;
  #told = 0;

  constructor(pi: Pi, provider: ScriptedProvider, clock: { shiftMs: number }) {
    this.pi = pi;
    this.#provider = provider;
    this.#clock = clock;
  }

  /** The causes reported since the last call. */
  get causes(): string[] {
    const told = this.pi.frames("notice").flatMap(({ name, data }) => (name === "cache/broken" ? [data] : []));
    const fresh = told.slice(this.#told);
    this.#told = told.length;
    return fresh.map((data) => (data as { cause: string }).cause);
  }

  async prompt(message: string, calls = 0): Promise<string[]> {
    for (let i = 0; i < calls; i += 1) this.#provider.add(answer(call("bash", { command: `echo ${i} of ${calls}` })));
    this.#provider.add(answer("Understood."));
    await this.pi.rpc({ type: "prompt", message });
    await this.pi.settled(++this.#settled);
    return this.causes;
  }

  async change(what: string): Promise<void> {
    await this.pi.rpc({ type: "prompt", message: `/cache-do ${what}` });
  }

  /** What a change does to the next request, and whether the request after it is normal again. */
  async causesOf(what: string, message = "What now?"): Promise<string[]> {
    await this.change(what);
    const causes = await this.prompt(message);
    return [...causes, ...(await this.prompt("And now?")).map((cause) => `again ${cause}`)];
  }

  async configure(optimisation: OptimisationOptions): Promise<void> {
    await this.pi.send({ kind: "configure", parts: partsOf(optimisation), isForNext: false });
  }

  async report(): Promise<Result<"cache/report">> {
    return await this.pi.send({ kind: "ask", about: "cache/report", params: {} });
  }

  async entries(): Promise<Entry[]> {
    const { data } = await this.pi.rpc({ type: "get_entries" });
    return (data as { entries: Entry[] }).entries;
  }

  /** Advances the provider's time, and pi's unless the provider forgets too early. */
  async wait(ms: number, forPi = true): Promise<void> {
    this.#clock.shiftMs += ms;
    if (forPi) await this.change(`clock ${ms}`);
  }
}

test.for(apis)(
  "each change at %s is reported with its cause, and twenty turns without a change report none",
  async (api) => {
    const clock = { shiftMs: 0 };
    await using provider = await startProvider({ cache: { now: () => Date.now() + clock.shiftMs } });
    await using pi = await startPi({
      provider,
      api,
      before: ["cache-changes"],
      settings: { compaction: { enabled: true, reserveTokens: 16_384, keepRecentTokens: 500 } },
      parts: partsOf({ cache: { enabled: true }, masking: { afterTurns: 200 } }),
    });
    const talk = new Conversation(pi, provider, clock);

    expect(await talk.prompt(long, 19)).toEqual([]);
    expect(await talk.prompt(`${long} Again.`)).toEqual([]);
    const plain = await talk.report();
    expect(plain).toMatchObject({ requests: 21, causes: {}, recent: [], volatile: [] });
    expect(plain.hitRate).toBeGreaterThan(0.7);
    // pi declares them in the order of registration.
    for (const { toolNames } of provider.requests)
      expect(toolNames).toEqual(["bash", "edit", "read", "recall", "write"]);

    const masking = { afterTurns: 1, protectTokens: 3_000, expectedRequests: 10_000 };
    await talk.configure({ cache: { minBatchTokens: 0 }, masking });
    provider.add(answer(call("bash", { command: "seq 1 1500" })), answer(call("bash", { command: "seq 1 1501" })));
    const masked = await talk.prompt("Count.");
    await talk.configure({ cache: { enabled: true }, masking: { afterTurns: 200 } });
    const causes: Record<string, string[]> = {
      "a batch of the part that masks": [...masked, ...(await talk.prompt("And now?"))],
      "fewer tools": await talk.causesOf("tools less"),
      "another section": await talk.causesOf("section Other."),
      "tools in another order, sorted": await talk.causesOf("reversed on"),
    };
    await talk.configure({ cache: { enabled: true, sortTools: false }, masking: { afterTurns: 200 } });
    await talk.prompt("What now?");
    causes["tools in another order"] = await talk.causesOf("reversed off");
    causes["messages that another extension rewrites"] = await talk.causesOf("rewritten on");
    await talk.change("rewritten off");
    await talk.prompt("What now?");

    const users = (await talk.entries()).filter(({ message }) => message?.role === "user").map(({ id }) => id);
    causes["another branch"] = await talk.causesOf(`go ${users[1]}`, `Otherwise: ${long}`);
    await talk.change(`edit ${users[0]}`);
    await talk.prompt("What now?");
    causes["an edit of another extension"] = await talk.prompt("And now?");
    await talk.wait(301_000);
    causes["a long pause"] = [...(await talk.prompt("What now?")), ...(await talk.prompt("And now?"))];
    await talk.wait(301_000, false);
    causes["a service that forgets"] = [...(await talk.prompt("What now?")), ...(await talk.prompt("And now?"))];
    await pi.rpc({ type: "set_model", provider: api, modelId: "model-2" });
    causes["another model"] = [...(await talk.prompt("What now?")), ...(await talk.prompt("And now?"))];
    provider.add(answer(`A summary. ${"It was long. ".repeat(500)}`), answer("Of a turn. "));
    await talk.prompt(long);
    await talk.prompt(long);
    await pi.rpc({ type: "compact" });
    causes["a compaction"] = [...(await talk.prompt("What now?")), ...(await talk.prompt("And now?"))];
    expect(causes).toEqual({
      "a batch of the part that masks": ["edit:masking"],
      "fewer tools": ["tool_set"],
      "another section": ["section:docs"],
      "tools in another order, sorted": [],
      "tools in another order": ["tool_order"],
      "messages that another extension rewrites": ["edit:foreign"],
      "an edit of another extension": ["edit:foreign"],
      "another branch": ["branch"],
      "a long pause": ["expired"],
      "a service that forgets": ["service"],
      "another model": ["model"],
      "a compaction": ["compaction"],
    });
    expect(pi.frames("fault")).toEqual([]);
  },
);

test.for(apis)("text that differs between the first two requests at %s is reported by its section", async (api) => {
  const clock = { shiftMs: 0 };
  await using provider = await startProvider({ cache: {} });
  await using pi = await startPi({
    provider,
    api,
    before: ["cache-changes"],
    parts: partsOf({ cost: { enabled: true } }),
  });
  const talk = new Conversation(pi, provider, clock);
  expect(await talk.report()).toMatchObject({ refused: "unsupported_by_pi" });
  await talk.configure({ cache: { noiseTokens: 512 } });
  await talk.change("timed on");
  await talk.prompt("Hello.", 1);
  expect((await talk.report()).volatile).toEqual(["now"]);
  const degraded = pi.frames("notice").filter(({ name }) => name === "optimisation/degraded");
  const reason = 'The section "now" of the prompt varies from request to request.';
  expect(degraded.map(({ data }) => data)).toEqual([{ part: "cache", reason }]);
});

test("the prompt keeps one form for the session's life, whatever is configured later", async () => {
  await using provider = await startProvider();
  const optimisation = { cache: { enabled: true }, format: { sections: "markdown" } } as const;
  await using pi = await startPi({ provider, api: "scripted-anthropic", parts: partsOf(optimisation) });
  const talk = new Conversation(pi, provider, { shiftMs: 0 });
  await talk.prompt("Hello.", 1);
  const { parts } = await pi.send<Result<"optimisation/inspect">>({
    kind: "ask",
    about: "optimisation/inspect",
    params: {},
  });
  expect(parts["format"]?.figures).toMatchObject({ sections: "markdown", wrapperTokens: 0 });
  expect(parts["cache"]?.state).toBe("on");
  await pi.restart();
  await talk.configure({ cache: { enabled: true }, format: { sections: "xml" } });
  const after = new Conversation(pi, provider, { shiftMs: 0 });
  await after.prompt("And now?");
  const kept = (await after.entries()).filter(({ customType }) => customType === "pi-rpcd.prompt_form");
  expect(kept.map(({ data }) => data)).toEqual([{ v: 1, isSorted: true, sections: "markdown" }]);
  const written = provider.requests.map(({ body }) => JSON.stringify([body["system"], body["tools"]]));
  expect(new Set(written).size).toBe(1);
  expect(written[0]).toContain("## tools\\n- bash: ");
  expect(written[0]).not.toContain("<rules>");
});
