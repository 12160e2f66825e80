import { describe, expect, test } from "vitest";
import { answer, call, raw, thinking } from "../../../provider/reply.ts";
import { startProvider } from "../../../provider/server.ts";
import { apis, ask, type Json, request, textOf } from "./requests.ts";

describe.each(apis)("an answer over %s", (api) => {
  test("without a script it repeats the last message", async () => {
    await using provider = await startProvider();
    const answered = await ask(provider, api, request(api, "what is up?"));
    expect(answered.status).toBe(200);
    expect(answered.headers.get("content-type")).toContain("text/event-stream");
    expect(textOf(answered, api)).toBe("Echo: what is up?");
  });

  test("the same request gets the same text, streamed or not", async () => {
    await using provider = await startProvider();
    const texts = [];
    for (const stream of [true, true, false]) {
      texts.push(textOf(await ask(provider, api, request(api, "héllo 🎉 wörld", { stream })), api));
    }
    expect(new Set(texts)).toEqual(new Set(["Echo: héllo 🎉 wörld"]));
  });

  test("each text piece is a delta of its own", async () => {
    await using provider = await startProvider({ script: [answer("one ", "two ", "three")] });
    const answered = await ask(provider, api);
    const deltas = answered.events
      .map((event) => textOf({ ...answered, events: [event] }, api))
      .filter((text) => text !== "");
    expect(deltas).toEqual(["one ", "two ", "three"]);
  });

  test("steps are used up in order, then the echo answers", async () => {
    await using provider = await startProvider({ script: ["first", () => "second"] });
    expect(textOf(await ask(provider, api), api)).toBe("first");
    expect(provider.remainingSteps).toBe(1);
    expect(textOf(await ask(provider, api), api)).toBe("second");
    expect(textOf(await ask(provider, api), api)).toBe("Echo: hello");
  });

  test("a raw part is in the stream unchanged", async () => {
    await using provider = await startProvider({ script: [answer("a", raw("data: {broken\n\n"))] });
    expect((await ask(provider, api)).text).toContain("data: {broken\n\n");
  });

  test("extra headers are sent with the answer", async () => {
    await using provider = await startProvider({ script: [{ ...answer("x"), headers: { "x-ratelimit-left": "7" } }] });
    expect((await ask(provider, api)).headers.get("x-ratelimit-left")).toBe("7");
  });
});

const all = answer(
  thinking("hm"),
  "text",
  call("read", { path: "a" }, "id-1"),
  call("bash", { command: "ls" }, "id-2"),
);
const usage = { inputTokens: 10, outputTokens: 5, cacheReadTokens: 3, cacheWriteTokens: 2, reasoningTokens: 1 };

describe("OpenAI", () => {
  test("a stream carries deltas, tool calls in pieces, the finish reason, the usage when asked, and the end mark", async () => {
    await using provider = await startProvider({ script: [{ ...all, usage }] });
    const { events } = await ask(
      provider,
      "openai",
      request("openai", "x", { stream_options: { include_usage: true } }),
    );
    const choices = events.flatMap((event) => (event["choices"] as Json[] | undefined) ?? []);
    const deltas = choices.map((choice) => choice["delta"] as Json);
    expect(deltas[0]).toEqual({ role: "assistant", content: "" });
    expect(deltas[1]).toEqual({ reasoning_content: "hm" });
    const calls = deltas.flatMap((delta) => (delta["tool_calls"] as Json[] | undefined) ?? []);
    const argumentsOf = (index: number): string =>
      calls
        .filter((piece) => piece["index"] === index)
        .map((piece) => (piece["function"] as Json)["arguments"])
        .join("");
    expect(calls.map((piece) => piece["id"]).filter(Boolean)).toEqual(["id-1", "id-2"]);
    expect(JSON.parse(argumentsOf(0))).toEqual({ path: "a" });
    expect(JSON.parse(argumentsOf(1))).toEqual({ command: "ls" });
    expect(choices.at(-1)?.["finish_reason"]).toBe("tool_calls");
    expect(events.at(-2)).toMatchObject({
      choices: [],
      usage: {
        prompt_tokens: 15,
        completion_tokens: 5,
        total_tokens: 20,
        prompt_tokens_details: { cached_tokens: 3, cache_write_tokens: 2 },
      },
    });
    expect(events.at(-1)).toEqual({ data: "[DONE]" });
  });

  test("a stream has no usage unless asked", async () => {
    await using provider = await startProvider();
    expect((await ask(provider, "openai")).text).not.toContain("usage");
  });

  test("an answer that is not streamed is one completion", async () => {
    await using provider = await startProvider({ script: [{ ...all, usage }] });
    const { json } = await ask(provider, "openai", request("openai", "x", { stream: false }));
    expect(json).toMatchObject({
      object: "chat.completion",
      choices: [
        {
          finish_reason: "tool_calls",
          message: {
            role: "assistant",
            content: "text",
            reasoning_content: "hm",
            tool_calls: [
              { id: "id-1", type: "function", function: { name: "read", arguments: '{"path":"a"}' } },
              { id: "id-2", type: "function", function: { name: "bash", arguments: '{"command":"ls"}' } },
            ],
          },
        },
      ],
      usage: { total_tokens: 20 },
    });
  });

  test("arguments given as a string are sent unchanged", async () => {
    await using provider = await startProvider({ script: [answer(call("bash", '{"comm'))] });
    const { json } = await ask(provider, "openai", request("openai", "x", { stream: false }));
    expect(json).toMatchObject({ choices: [{ message: { tool_calls: [{ function: { arguments: '{"comm' } }] } }] });
  });
});

describe("OpenAI Responses", () => {
  test("a stream opens and closes one item for each kind of content, and ends with the whole response", async () => {
    const script = [
      { ...answer(thinking("h"), thinking("m"), "te", "xt", call("read", { path: "a" }, "id-1")), usage },
    ];
    await using provider = await startProvider({ script });
    const { events } = await ask(provider, "openai-responses");
    const item = (...between: string[]): string[] => ["output_item.added", ...between, "output_item.done"];
    expect(events.map(({ event }) => event?.replace("response.", ""))).toEqual([
      "created",
      "in_progress",
      ...item(
        ...["reasoning_summary_part.added", "reasoning_summary_text.delta", "reasoning_summary_text.delta"],
        ...["reasoning_summary_text.done", "reasoning_summary_part.done"],
      ),
      ...item(
        ...["content_part.added", "output_text.delta", "output_text.delta", "output_text.done", "content_part.done"],
      ),
      ...item(...["function_call_arguments.delta", "function_call_arguments.delta", "function_call_arguments.done"]),
      "completed",
    ]);
    expect(events.every((event) => event["type"] === event.event)).toBe(true);
    expect(events.map((event) => event["sequence_number"])).toEqual(events.map((_, index) => index));
    const done = events.filter(({ event }) => event === "response.output_item.done").map((event) => event["item"]);
    expect(done).toMatchObject([
      { type: "reasoning", id: expect.stringMatching(/^rs_/), summary: [{ type: "summary_text", text: "hm" }] },
      { type: "message", id: expect.stringMatching(/^msg_/), content: [{ type: "output_text", text: "text" }] },
      {
        type: "function_call",
        id: expect.stringMatching(/^fc_/),
        call_id: "id-1",
        name: "read",
        arguments: '{"path":"a"}',
      },
    ]);
    expect(events.at(-1)?.["response"]).toMatchObject({
      status: "completed",
      output: done,
      usage: { input_tokens: 15, input_tokens_details: { cached_tokens: 3 }, output_tokens: 5, total_tokens: 20 },
    });
    const ids = events.flatMap((event) => (typeof event["item_id"] === "string" ? [event["item_id"]] : []));
    expect(new Set(ids)).toEqual(new Set(done.map((each) => (each as Json)["id"])));
  });

  test("a call's id in pi's form gives both of its ids", async () => {
    await using provider = await startProvider({ script: [answer(call("read", {}, "call_1|fc_2"))] });
    const { json } = await ask(provider, "openai-responses", request("openai-responses", "x", { stream: false }));
    expect(json).toMatchObject({ output: [{ id: "fc_2", call_id: "call_1" }] });
  });

  test("reasoning is encrypted on request", async () => {
    await using provider = await startProvider({ otherwise: () => answer(thinking("hm"), "text") });
    const include = ["reasoning.encrypted_content"];
    const asked = await ask(provider, "openai-responses", request("openai-responses", "x", { include }));
    expect(asked.text).toContain('"encrypted_content":"');
    expect((await ask(provider, "openai-responses")).text).not.toContain("encrypted_content");
  });

  test.each([
    ["length", "incomplete", { reason: "max_output_tokens" }],
    ["refusal", "incomplete", { reason: "content_filter" }],
    ["stop", "completed", null],
  ] as const)("an end by %s is %s", async (stop, status, incomplete_details) => {
    await using provider = await startProvider({ otherwise: () => ({ ...answer("text"), stop }) });
    const right = { object: "response", status, incomplete_details, output: [{ type: "message" }] };
    const whole = await ask(provider, "openai-responses", request("openai-responses", "x", { stream: false }));
    expect(whole.json).toMatchObject(right);
    const { events } = await ask(provider, "openai-responses");
    expect(events.at(-1)).toMatchObject({ event: `response.${status}`, response: right });
  });
});

describe("Anthropic", () => {
  test("a stream opens and closes one block for each kind of content", async () => {
    await using provider = await startProvider({
      script: [{ ...answer(thinking("h"), thinking("m"), "te", "xt", call("read", { path: "a" }, "id-1")), usage }],
    });
    const { events } = await ask(provider, "anthropic");
    expect(events.map((event) => event.event)).toEqual([
      "message_start",
      "ping",
      ...[
        "content_block_start",
        "content_block_delta",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
      ],
      ...["content_block_start", "content_block_delta", "content_block_delta", "content_block_stop"],
      ...[
        "content_block_start",
        "content_block_delta",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
      ],
      "message_delta",
      "message_stop",
    ]);
    expect(events.every((event) => event["type"] === event.event)).toBe(true);
    expect(
      events.filter((event) => "content_block" in event).map((event) => [event["index"], event["content_block"]]),
    ).toEqual([
      [0, { type: "thinking", thinking: "", signature: "" }],
      [1, { type: "text", text: "" }],
      [2, { type: "tool_use", id: "id-1", name: "read", input: {} }],
    ]);
    const input = events.map((event) => (event["delta"] as Json | undefined)?.["partial_json"] ?? "").join("");
    expect(JSON.parse(input)).toEqual({ path: "a" });
    expect(events[0]).toMatchObject({
      message: { model: "model-1", usage: { input_tokens: 10, output_tokens: 1, cache_read_input_tokens: 3 } },
    });
    expect(events.at(-2)).toMatchObject({
      delta: { stop_reason: "tool_use" },
      usage: { output_tokens: 5, cache_creation_input_tokens: 2 },
    });
  });

  test("an answer that is not streamed has complete blocks", async () => {
    await using provider = await startProvider({
      script: [{ ...answer("te", "xt", call("read", { path: "a" }, "id-1")), stop: "length" }],
    });
    const { json } = await ask(provider, "anthropic", request("anthropic", "x", { stream: false }));
    expect(json).toMatchObject({
      type: "message",
      role: "assistant",
      content: [
        { type: "text", text: "text" },
        { type: "tool_use", id: "id-1", name: "read", input: { path: "a" } },
      ],
      stop_reason: "max_tokens",
    });
  });
});

describe("Google", () => {
  test("a stream carries text, thoughts and function calls as parts, and ends with reason and usage", async () => {
    await using provider = await startProvider({ script: [{ ...all, usage }] });
    const { events } = await ask(provider, "google");
    const parts = events.flatMap((event) => {
      const [candidate] = event["candidates"] as { content: { parts: Json[] } }[];
      return candidate?.content.parts ?? [];
    });
    expect(parts).toEqual([
      { text: "hm", thought: true },
      { text: "text" },
      { functionCall: { id: "id-1", name: "read", args: { path: "a" } } },
      { functionCall: { id: "id-2", name: "bash", args: { command: "ls" } } },
      { text: "" },
    ]);
    expect(events.at(-1)).toMatchObject({
      candidates: [{ finishReason: "STOP" }],
      usageMetadata: {
        promptTokenCount: 15,
        cachedContentTokenCount: 3,
        candidatesTokenCount: 4,
        thoughtsTokenCount: 1,
      },
    });
  });

  test("generateContent answers in one piece", async () => {
    await using provider = await startProvider({ script: [answer("a", "b")] });
    const { json } = await ask(provider, "google", request("google", "x", { stream: false }));
    expect(json).toMatchObject({
      candidates: [{ content: { role: "model", parts: [{ text: "ab" }] }, finishReason: "STOP" }],
    });
  });
});

test("tool calls without ids get ids in a format that no other provider uses", async () => {
  const ids = new Set<unknown>();
  for (let n = 0; n < 2; n += 1) {
    await using provider = await startProvider({ script: [answer(call("a"), call("a")), answer(call("a"))] });
    for (const _ of [1, 2]) {
      const { json } = await ask(provider, "anthropic", request("anthropic", "x", { stream: false }));
      for (const block of json["content"] as Json[]) ids.add(block["id"]);
    }
  }
  expect(ids.size).toBe(6);
  expect([...ids].every((id) => /^[a-zA-Z0-9_-]{1,64}$/.test(String(id)))).toBe(true);
});

test("the echo of a tool result is marked as such, and a long text is shortened", async () => {
  await using provider = await startProvider();
  const call = {
    role: "assistant",
    content: null,
    tool_calls: [{ id: "c", type: "function", function: { name: "f", arguments: "{}" } }],
  };
  const messages = [{ role: "user", content: "x" }, call, { role: "tool", tool_call_id: "c", content: "42" }];
  expect(textOf(await ask(provider, "openai", request("openai", "", { messages })), "openai")).toBe(
    "The tool said: 42",
  );
  const long = textOf(await ask(provider, "openai", request("openai", "y".repeat(5000))), "openai");
  expect(long).toBe(`Echo: ${"y".repeat(400)}…`);
});

test("unknown paths get a 404 and are not logged", async () => {
  await using provider = await startProvider();
  const responses = await Promise.all([
    fetch(`${provider.url}/v1/models`),
    fetch(provider.url, { method: "POST", body: "{}" }),
  ]);
  expect(responses.map((response) => response.status)).toEqual([404, 404]);
  expect(provider.requests).toEqual([]);
});
