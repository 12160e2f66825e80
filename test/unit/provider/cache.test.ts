import { describe, expect, test } from "vitest";
import { PromptCache, type PromptCacheOptions } from "../../../provider/cache/prompt-cache.ts";
import { loadVocabulary } from "../../../provider/cache/vocabulary.ts";
import { type ScriptedProvider, startProvider } from "../../../provider/server.ts";
import { type Api, apis, ask, type Json, request } from "./requests.ts";

/** About two thousand tokens that are unique to this number. */
const long = (seed: number): string =>
  Array.from({ length: 500 }, (_, line) => `line ${line} of text ${seed}`).join("\n");
const mark = { type: "ephemeral" };

class Clock {
  ms = 1_000_000;
  readonly now = (): number => this.ms;
}

function cached(cache: PromptCacheOptions = {}): Promise<ScriptedProvider> {
  return startProvider({ cache, otherwise: () => "Yes." });
}

async function usageOf(provider: ScriptedProvider, api: Api, body: Json) {
  await ask(provider, api, { ...body, ...(api !== "google" && { stream: true }) });
  const usage = provider.requests.at(-1)?.usage;
  if (usage === undefined) throw new Error("The request has no usage.");
  return usage;
}

/** A conversation in which the first text and the newest may differ, with an answer in between. */
function conversation(api: Api, system: string, ...texts: readonly string[]): Json {
  const turns = texts.flatMap((text, i) =>
    i === 0
      ? [["user", text]]
      : [
          ["assistant", "Yes."],
          ["user", text],
        ],
  );
  switch (api) {
    case "openai":
      return request(api, "", {
        messages: [{ role: "system", content: system }, ...turns.map(([role, content]) => ({ role, content }))],
      });
    case "openai-responses":
      return request(api, "", {
        instructions: system,
        input: turns.map(([role, content]) => ({ role, content })),
      });
    case "google":
      return {
        systemInstruction: { parts: [{ text: system }] },
        contents: turns.map(([role, text]) => ({ role: role === "user" ? "user" : "model", parts: [{ text }] })),
      };
    case "anthropic":
      return request(api, "", {
        system: [{ type: "text", text: system, cache_control: mark }],
        messages: turns.map(([role, text], i) =>
          i === turns.length - 1
            ? { role, content: [{ type: "text", text, cache_control: mark }] }
            : { role, content: text },
        ),
      });
  }
}

describe.each(apis)("the prompt cache of %s", (api) => {
  test("serves the common beginning of the next request, which pays for the rest", async () => {
    await using provider = await cached();
    const first = await usageOf(provider, api, conversation(api, long(0), long(1)));
    const second = await usageOf(provider, api, conversation(api, long(0), long(1), "And now?"));
    const total = first.inputTokens + first.cacheReadTokens + first.cacheWriteTokens;
    expect(first.cacheReadTokens).toBe(0);
    expect(second.cacheReadTokens).toBeGreaterThan(total - 128);
    expect(second.cacheReadTokens).toBeLessThanOrEqual(total);
    expect(second.outputTokens).toBe(2);
    const rest = second.inputTokens + second.cacheWriteTokens;
    expect(rest).toBeLessThan(160);
    expect(rest).toBeGreaterThan(0);
  });

  test("loses everything after a text that differs early, and nothing before it", async () => {
    await using provider = await cached();
    await usageOf(provider, api, conversation(api, long(0), long(1), long(2)));
    const changed = await usageOf(provider, api, conversation(api, long(0), long(3), long(2)));
    const system = (await loadVocabulary("cl100k_base")).encode(long(0)).length;
    expect(changed.cacheReadTokens).toBeGreaterThan(system - 128);
    expect(changed.cacheReadTokens).toBeLessThan(system + 128);
  });

  test("keeps nothing beyond its lifetime, which each use renews", async () => {
    const clock = new Clock();
    await using provider = await cached({ now: clock.now });
    const body = conversation(api, long(0), "Well?");
    await usageOf(provider, api, body);
    for (let use = 0; use < 3; use += 1) {
      clock.ms += 299_999;
      expect((await usageOf(provider, api, body)).cacheReadTokens).toBeGreaterThan(1_024);
    }
    clock.ms += 300_000;
    expect((await usageOf(provider, api, body)).cacheReadTokens).toBe(0);
  });

  test("does not keep prompts below 1,024 tokens", async () => {
    await using provider = await cached();
    const short = conversation(api, "word ".repeat(900), "Well?");
    await usageOf(provider, api, short);
    expect(await usageOf(provider, api, short)).toMatchObject({ cacheReadTokens: 0, cacheWriteTokens: 0 });
  });

  test("reports the counted tokens", async () => {
    await using provider = await cached();
    const body = conversation(api, long(0), "Well?");
    await usageOf(provider, api, body);
    const { text } = await ask(
      provider,
      api,
      api === "openai" ? { ...body, stream_options: { include_usage: true } } : body,
    );
    const usage = provider.requests.at(-1)?.usage;
    expect(usage?.cacheReadTokens).toBeGreaterThan(1_024);
    const name = {
      openai: "cached_tokens",
      "openai-responses": "cached_tokens",
      anthropic: "cache_read_input_tokens",
      google: "cachedContentTokenCount",
    }[api];
    expect(text).toContain(`"${name}":${usage?.cacheReadTokens}`);
  });

  test("does not serve another model", async () => {
    await using provider = await cached();
    const cache = new PromptCache();
    const body = conversation(api, long(0), "Well?");
    await ask(provider, api, body);
    const entry = provider.requests[0];
    if (entry === undefined) throw new Error("There was no request.");
    const ofModel = (model: string) => cache.usageOf(Object.create(entry, { model: { value: model } }), "");
    await ofModel("a");
    expect((await ofModel("b")).cacheReadTokens).toBe(0);
    expect((await ofModel("a")).cacheReadTokens).toBeGreaterThan(1_024);
  });
});

describe("Anthropic's marks", () => {
  const user = (text: string, more: Json = {}) => ({ role: "user", content: [{ type: "text", text, ...more }] });

  test("without a mark nothing is kept", async () => {
    await using provider = await cached();
    const body = request("anthropic", long(1));
    await usageOf(provider, "anthropic", body);
    expect(await usageOf(provider, "anthropic", body)).toMatchObject({ cacheReadTokens: 0, cacheWriteTokens: 0 });
  });

  test("tokens before the last mark are written to the cache, and later ones are plain input", async () => {
    await using provider = await cached();
    const marked = user(long(1), { cache_control: mark });
    const usage = await usageOf(provider, "anthropic", request("anthropic", "", { messages: [marked, user("Well?")] }));
    expect(usage.cacheWriteTokens).toBeGreaterThan(2_000);
    expect(usage.inputTokens).toBeLessThan(20);
  });

  test("a mark may move: the same text as string or block, with or without a mark, is equal", async () => {
    await using provider = await cached();
    const first = request("anthropic", "", { messages: [user(long(1), { cache_control: mark })] });
    const { cacheWriteTokens } = await usageOf(provider, "anthropic", first);
    const answered = { role: "assistant", content: [{ type: "text", text: "Yes." }] };
    const next = request("anthropic", "", {
      messages: [{ role: "user", content: long(1) }, answered, user("Go on.", { cache_control: mark })],
    });
    expect((await usageOf(provider, "anthropic", next)).cacheReadTokens).toBe(cacheWriteTokens);
  });

  test.each([
    [18, true],
    [19, false],
  ])("with %i blocks between two marks the older one is found: %s", async (between, isFound) => {
    await using provider = await cached();
    const blocks = (count: number) => Array.from({ length: count }, (_, i) => ({ type: "text", text: `block ${i}` }));
    const older = { type: "text", text: long(1) };
    const body = (content: readonly Json[]) => request("anthropic", "", { messages: [{ role: "user", content }] });
    await usageOf(provider, "anthropic", body([{ ...older, cache_control: mark }]));
    const newest = { type: "text", text: "newest", cache_control: mark };
    const usage = await usageOf(provider, "anthropic", body([older, ...blocks(between), newest]));
    expect(usage.cacheReadTokens > 0).toBe(isFound);
  });

  test("an hour of cache life lasts an hour", async () => {
    const clock = new Clock();
    await using provider = await cached({ now: clock.now });
    const body = request("anthropic", "", { messages: [user(long(1), { cache_control: { ...mark, ttl: "1h" } })] });
    await usageOf(provider, "anthropic", body);
    clock.ms += 3_599_999;
    expect((await usageOf(provider, "anthropic", body)).cacheReadTokens).toBeGreaterThan(2_000);
    clock.ms += 3_600_000;
    expect((await usageOf(provider, "anthropic", body)).cacheReadTokens).toBe(0);
  });
});

describe("counting", () => {
  test("includes images and tools, and a refused request caches nothing", async () => {
    await using provider = await startProvider({ cache: {}, apiKey: "right", otherwise: () => "Yes." });
    await ask(provider, "openai", conversation("openai", long(0), "Well?"));
    expect(provider.requests[0]?.usage).toBeUndefined();
    await using open = await cached();
    const plain = await usageOf(open, "openai", request("openai"));
    const tools = [{ type: "function", function: { name: "look", description: "word ".repeat(500), parameters: {} } }];
    expect((await usageOf(open, "openai", request("openai", "hello", { tools }))).inputTokens).toBeGreaterThan(500);
    const image = { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } };
    const content = [{ type: "text", text: "hello" }, image];
    const seen = await usageOf(open, "openai", request("openai", "", { messages: [{ role: "user", content }] }));
    expect(seen.inputTokens - plain.inputTokens).toBe(1_200);
  });

  test("treats names of special tokens as text, and each encoding counts by its own rules", async () => {
    const counts = [];
    for (const name of ["cl100k_base", "o200k_base", "r50k_base"] as const) {
      const { encode } = await loadVocabulary(name);
      expect(encode("<|endoftext|>").length).toBeGreaterThan(1);
      counts.push(encode("ein Übermaß an 汉字 und Wörtern").length);
    }
    expect(new Set(counts).size).toBeGreaterThan(1);
  });
});

test("a request that continues a message thread has the thread's earlier messages, and reads their cache", async () => {
  await using provider = await cached();
  const mine = (id: number, ...blocks: Json[]): Json => ({
    ...{ role: "user", content: [...blocks, { type: "text", text: long(id), cache_control: mark }] },
  });
  const head = { system: [{ type: "text", text: long(1), cache_control: mark }], tools: [] };
  const created = await ask(provider, "anthropic", {
    ...request("anthropic", "", { ...head, messages: [mine(2)] }),
    thread: { type: "create" },
  });
  const id = created.events.map(({ message }) => (message as Json | undefined)?.["id"]).find((found) => found);
  const next = {
    ...request("anthropic", "", { messages: [mine(3)] }),
    thread: { type: "continue", previous_message_id: id },
  };
  const before = provider.requests.at(-1)?.usage;
  const after = await usageOf(provider, "anthropic", next);
  expect(after.cacheReadTokens).toBe(before?.cacheWriteTokens);
  expect(provider.requests.at(-1)?.messages.map(({ role }) => role)).toEqual(["system", "user", "assistant", "user"]);
  expect(provider.requests.at(-1)?.hasText("line 0 of text 2")).toBe(true);
  // A thread is continued once; pi then creates another.
  const again = await ask(provider, "anthropic", next);
  expect(again.status).toBe(404);
  expect(again.json["error"]).toMatchObject({ details: { error_code: "thread_not_found" } });
});
