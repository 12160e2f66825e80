import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import type { ScriptedName } from "../../../provider/agent-dir.ts";
import { answer } from "../../../provider/reply.ts";
import { startProvider } from "../../../provider/server.ts";
import { Random } from "../../soak/random.ts";
import { type Pi, startPi } from "../extension/driver.ts";
import { degradedOf, prompt } from "./visible.ts";

// Random sessions, with blocks that fit and blocks that no compress call would make: services accept every request.

type Entry = Readonly<Record<string, unknown>> & { readonly id: string };
const timestamp = 1_700_000_000_000;
const usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0 };
const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };

class Maker {
  readonly #random: Random;
  readonly #entries: Entry[] = [];
  #blocks = 0;

  constructor(seed: number) {
    this.#random = new Random(seed);
  }

  /** Some turns, with blocks in between. */
  make(model: { readonly api: string; readonly provider: string; readonly id: string }): readonly Entry[] {
    for (let turn = this.#random.integer(2, 7); turn > 0; turn -= 1) {
      if (this.#entries.length === 0 || this.#random.chance(0.9))
        this.#message({ role: "user", content: `Prompt ${this.#entries.length}.` });
      if (this.#random.chance(0.2)) this.#command();
      for (let answers = this.#random.integer(0, 3); answers > 0; answers -= 1)
        this.#answer(model, this.#random.integer(0, 3));
      if (this.#random.chance(0.7)) this.#answer(model, 0);
      if (this.#random.chance(0.5)) this.#block();
    }
    return this.#entries;
  }

  #add(fields: Readonly<Record<string, unknown>>): void {
    const id = String(this.#entries.length + 1).padStart(8, "0");
    const parentId = this.#entries.at(-1)?.id ?? null;
    this.#entries.push({ id, parentId, timestamp: new Date(timestamp).toISOString(), ...fields });
  }

  /** Most are of the same few milliseconds. */
  #message(message: Readonly<Record<string, unknown>>): void {
    this.#add({ type: "message", message: { ...message, timestamp: timestamp + this.#random.integer(0, 2) } });
  }

  #command(): void {
    const excludeFromContext = this.#random.chance(0.5);
    const ended = { exitCode: 0, cancelled: false, truncated: false, excludeFromContext };
    this.#message({ role: "bashExecution", command: "ls", output: "a\nb", ...ended });
  }

  #answer(
    { api, provider, id: model }: { readonly api: string; readonly provider: string; readonly id: string },
    calls: number,
  ): void {
    const ids = Array.from({ length: calls }, (_, at) => `call${this.#entries.length}x${at}`);
    const content = [
      ...(calls === 0 || this.#random.chance(0.5) ? [{ type: "text", text: `Answer ${this.#entries.length}.` }] : []),
      ...ids.map((id) => ({ type: "toolCall", id, name: "read", arguments: { path: "a" } })),
    ];
    const stopReason = calls > 0 ? "toolUse" : "stop";
    this.#message({ role: "assistant", content, api, provider, model, usage: { ...usage, cost }, stopReason });
    for (const toolCallId of ids) {
      const text = [{ type: "text", text: `Result of ${toolCallId}.` }];
      this.#message({ role: "toolResult", toolCallId, toolName: "read", content: text, isError: false });
    }
  }

  /** Any range, cut anywhere: in the middle of groups, over other blocks, and outside the session. */
  #block(): void {
    const ids = this.#entries.map(({ id }) => id);
    const [one, other] = [this.#random.integer(0, ids.length - 1), this.#random.integer(0, ids.length - 1)];
    const covered = ids.slice(Math.min(one, other), Math.max(one, other) + 1);
    const left = this.#random.chance(0.2) ? covered.filter(() => this.#random.chance(0.7)) : covered;
    const children = this.#blocks > 0 && this.#random.chance(0.3) ? [`b${this.#random.integer(1, this.#blocks)}`] : [];
    const range = { firstEntryId: covered[0], lastEntryId: covered.at(-1), entryIds: left, children };
    this.#blocks += 1;
    const block = {
      id: `b${this.#blocks}`,
      ...range,
      body: [{ text: "A summary." }, ...children.map((child) => ({ block: child }))],
      kept: [],
      tokensBefore: 1_000,
      tokensAfter: 10,
    };
    const data = { v: 1, topic: "Topic", blocks: [block] };
    this.#add({ type: "custom", customType: "pi-rpcd.blocks", data });
  }
}

const apis: readonly (readonly [ScriptedName, string])[] = [
  ["scripted", "openai-completions"],
  ["scripted-responses", "openai-responses"],
  ["scripted-anthropic", "anthropic-messages"],
  ["scripted-google", "google-generative-ai"],
];

/** Which of these sessions a service refuses, or pruning attributes to another extension. */
async function refused(
  pi: Pi,
  seeds: readonly number[],
  [provider, api]: readonly [string, string],
): Promise<number[]> {
  const found: number[] = [];
  for (const seed of seeds) {
    const file = pi.makeSessionFile(randomUUID(), new Maker(seed).make({ api, provider, id: "model-1" }));
    await pi.replaceSession(file);
    await prompt(pi, "The last prompt.");
    const last = await pi.event("message_end", ({ message }) => (message as { role: string }).role === "assistant");
    if ((last["message"] as { stopReason: string }).stopReason !== "stop" || degradedOf(pi).length > 0)
      found.push(seed);
  }
  return found;
}

test.each(apis)(
  "random sessions with random blocks are accepted over %s, including their tags (R002-25)",
  async (name, api) => {
    const seeds = Array.from({ length: 12 }, (_, index) => index + 1);
    await using provider = await startProvider({ otherwise: () => answer("Taken."), userFirst: true });
    await using pi = await startPi({ provider, api: name, pruning: { enabled: true, tagAssistant: true } });
    expect(await refused(pi, seeds, [name, api])).toEqual([]);
    expect(provider.requests.flatMap(({ violations }) => violations)).toEqual([]);
    expect(provider.requests.some((request) => request.hasText("[Compressed conversation section]"))).toBe(true);
  },
);
