import { expect, test } from "vitest";
import type { LogEntry } from "../../../provider/log.ts";
import { answer, call, type Part, status } from "../../../provider/reply.ts";
import type { Step } from "../../../provider/script.ts";
import { type ScriptedProvider, startProvider } from "../../../provider/server.ts";
import { type Pi, push, startPi } from "../extension/driver.ts";
import { entriesOf } from "../optimisation/model.ts";

const window = 200_000;
/** An answer that reports how full the window was. */
const full = (share: number, ...parts: readonly (string | Part)[]) =>
  ({ ...answer(...parts), usage: { inputTokens: share * window, outputTokens: 10 } }) as const;

const opening = "<dcp-system-reminder>\n";

/** The reminder of a request: its last message, and the only reminder. */
function reminderOf({ messages }: LogEntry): string | undefined {
  const texts = messages.flatMap((message) => message.texts);
  const all = texts.filter((text) => text.includes("dcp-system-reminder"));
  expect(all.length).toBeLessThanOrEqual(1);
  const last = messages.at(-1)?.texts.at(-1);
  expect(all).toEqual(last?.startsWith(opening) === true ? [last] : []);
  return all[0];
}

/** The system prompt's text. */
function promptOf({ body, messages }: LogEntry): string {
  const { system } = body;
  if (system !== undefined) return JSON.stringify(system);
  return messages
    .filter(({ role }) => role === "system")
    .flatMap(({ texts }) => texts)
    .join("\n");
}

interface Marked {
  readonly role: string;
  readonly content:
    | string
    | readonly { readonly type: string; readonly text?: string; readonly cache_control?: object }[];
}

function marksIn(value: unknown): number {
  return JSON.stringify(value).split('"cache_control"').length - 1;
}

class Session {
  readonly pi: Pi;
  readonly #provider: ScriptedProvider;
  #settled = 0;

  constructor(pi: Pi, provider: ScriptedProvider) {
    this.pi = pi;
    this.#provider = provider;
  }

  /** The requests of a run. */
  async prompt(message: string, ...replies: readonly Step[]): Promise<readonly LogEntry[]> {
    return await this.#run(replies, async () => void (await this.pi.rpc({ type: "prompt", message })));
  }

  async pushed(id: string, ...replies: readonly Step[]): Promise<readonly LogEntry[]> {
    return await this.#run(replies, async () => void (await this.pi.hold(push(id, `News ${id}.`))));
  }

  async #run(replies: readonly Step[], start: () => Promise<void>): Promise<readonly LogEntry[]> {
    const before = this.#provider.requests.length;
    this.#provider.add(...replies);
    await start();
    await this.pi.settled(++this.#settled);
    return this.#provider.requests.slice(before);
  }

  get nudged(): readonly string[] {
    return this.pi.frames("notice").flatMap((notice) => (notice.name === "pruning/nudged" ? [notice.data.kind] : []));
  }
}

test.for(["scripted", "scripted-anthropic"] as const)(
  "at %s a reminder is only in its own request, as the last message, and the prompt's section is the same in all runs",
  async (api) => {
    await using provider = await startProvider();
    await using pi = await startPi({
      provider,
      api,
      pruning: { enabled: true },
      after: ["emitting"],
      settings: { retry: { enabled: true, maxRetries: 2, baseDelayMs: 1, provider: { maxRetries: 0 } } },
    });
    const session = new Session(pi, provider);
    const emit = () => call("emit", { text: "output" });

    const first = await session.prompt(
      "First.",
      full(0.2, emit()),
      full(0.85, emit()),
      full(0.86, emit()),
      answer("Done."),
    );
    const told = first.map(reminderOf);
    expect(told.map((text) => text !== undefined)).toEqual([false, false, true, false]);
    expect(told[2]).toMatch(/^<dcp-system-reminder>\nThe context limit is reached: compress soon\.\n/);
    expect(told[2]).toMatch(/Context used: 85 % \(170,\d{3} of 200,000 tokens\); limit: 80 %\.\nBlocks: none\n/);
    expect(session.nudged).toEqual(["limit-soft"]);
    const records = entriesOf(pi).filter(({ customType }) => customType === "pi-rpcd.nudge");
    expect(records.map(({ data }) => data)).toEqual([{ v: 1, kind: "limit-soft", at: expect.any(String) }]);

    if (api === "scripted-anthropic") {
      for (const { body } of first) expect(marksIn(body)).toBeLessThanOrEqual(4);
      const messages = (first[2] as LogEntry).body["messages"] as readonly Marked[];
      expect(marksIn(messages.at(-1))).toBe(0);
      expect(JSON.stringify(messages.at(-1))).toContain("dcp-system-reminder");
      // So is the next request's.
      expect(marksIn(messages.at(-2))).toBe(1);
    }

    // pi repeats the request: it has the same reminder.
    await session.prompt("Second.", full(0.9, emit()), full(0.9, emit()), full(0.9, "Done."));
    const again = await session.prompt("Third.", status(529), status(529), full(0.9, "Done."));
    const texts = again.map(reminderOf);
    expect(texts[0]).toBeDefined();
    expect(texts).toEqual([texts[0], texts[0], texts[0]]);
    expect(session.nudged).toHaveLength(2);

    const systems = [...first, ...again].map(promptOf);
    for (let run = 0; run < 8; run += 1) {
      systems.push(...(await session.prompt(`Prompt ${run}.`, answer("Done."))).map(promptOf));
      systems.push(...(await session.pushed(`push-${run}`, answer("Done."))).map(promptOf));
    }
    expect(systems).toHaveLength(4 + 3 + 16);
    expect(new Set(systems).size).toBe(1);
    expect(systems[0]?.split("<context_pruning>")).toHaveLength(2);
    expect(systems[0]).toContain("Your context is limited.");

    // Another mode applies from the next request on.
    await pi.send({ kind: "ask", about: "pruning/setMode", params: { mode: "manual" } });
    const [manual] = await session.prompt("In manual mode.", answer("Done."));
    expect(promptOf(manual as LogEntry)).toContain("The user decides when the context is compressed.");
    expect(promptOf(manual as LogEntry)).not.toContain("Your context is limited.");
    await pi.revive();
    provider.add(answer("Done."));
    await pi.rpc({ type: "prompt", message: "Still?" });
    await pi.settled();
    expect(promptOf(provider.requests.at(-1) as LogEntry)).toBe(promptOf(manual as LogEntry));
  },
);

test("a limit's reminder names compressible ranges, and none follows a compression that freed enough; in strict manual mode the tool waits for the user", async () => {
  await using provider = await startProvider();
  await using pi = await startPi({
    provider,
    models: [{ id: "small", contextWindow: 20_000, maxTokens: 2_000 }],
    settings: { compaction: { enabled: false } },
    pruning: { enabled: true, protectRecentTurns: 1, minContext: 0.75 },
    after: ["emitting"],
  });
  const session = new Session(pi, provider);
  let outputs = 0;
  // Of identical calls only the last output would stay.
  const emit = () => call("emit", { text: `words of output ${++outputs}\n`, times: 800 });
  for (let prompt = 0; prompt < 3; prompt += 1)
    await session.prompt(`Look ${prompt}.`, answer(emit()), answer("Seen."));
  const used = (inputTokens: number) => ({ usage: { inputTokens, outputTokens: 10 } });
  // The model compresses the suggested range.
  const reply = ({ messages }: LogEntry) => {
    const range = /Ranges that could go: (m\d+)–(m\d+) \(about/.exec(messages.at(-1)?.texts.at(-1) ?? "");
    const [, startId, endId] = range ?? [];
    if (startId === undefined || endId === undefined) throw new Error("No range is named.");
    const ranges = [{ startId, endId, summary: "Nothing was found." }];
    return { ...answer(call("compress", { topic: "Looking", ranges })), ...used(17_500) };
  };
  const run = await session.prompt(
    "Look again.",
    { ...answer(emit()), ...used(14_500) },
    reply,
    answer(emit()),
    answer("Done."),
  );
  expect(run.map((request) => reminderOf(request) !== undefined)).toEqual([false, true, false, false]);
  expect(session.nudged.at(-1)).toBe("limit-soft");
  expect(run[2]?.messages.at(-1)?.toolResults.at(-1)?.text).toMatch(/The context is now about \d+ of 20000 tokens/);
  expect(run[2]?.hasText("[Compressed conversation section]")).toBe(true);

  await pi.send({
    kind: "configure",
    parts: pi.partsOf({}, { enabled: true, protectRecentTurns: 1, manualMode: { enabled: true, strict: true } }),
  });
  const compress = call("compress", { topic: "All", ranges: [{ startId: "m999", endId: "m999", summary: "x" }] });
  const strict = await session.prompt("Compress it all.", answer(compress), answer("It waits."));
  expect(strict[1]?.messages.at(-1)?.toolResults.at(-1)?.text).toContain(
    "Compression waits for the user in manual mode.",
  );
  const before = provider.requests.length;
  provider.add(answer(compress), answer(compress), answer("Done."));
  await pi.send({ kind: "ask", about: "pruning/compress", params: {} });
  await pi.settled(6);
  const granted = provider.requests.slice(before).map(({ messages }) => messages.at(-1)?.toolResults.at(-1)?.text);
  expect(granted[1]).toContain("m999 does not exist.");
  expect(granted[2]).toContain("Compression waits for the user in manual mode.");
});
