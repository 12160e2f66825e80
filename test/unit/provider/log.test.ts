import { connect } from "node:net";
import { expect, test } from "vitest";
import { startProvider } from "../../../provider/server.ts";
import { ask, type Json, post, request, urlOf } from "./requests.ts";

const tools = { name: "read", description: "d", input_schema: {} };

test.each([
  [
    "openai",
    {
      tools: [{ type: "function", function: { name: "read" } }],
      messages: [
        { role: "developer", content: "be brief" },
        {
          role: "user",
          content: [
            { type: "text", text: "look" },
            { type: "image_url", image_url: { url: "data:" } },
          ],
        },
        {
          role: "assistant",
          content: "ok",
          reasoning_content: "hm",
          tool_calls: [{ id: "c1", type: "function", function: { name: "read", arguments: '{"path":"a"}' } }],
        },
        { role: "tool", tool_call_id: "c1", content: [{ type: "text", text: "found" }] },
        { role: "user", content: "go on" },
      ],
    },
  ],
  [
    "openai-responses",
    {
      tools: [{ type: "function", name: "read" }],
      input: [
        { role: "developer", content: "be brief" },
        {
          role: "user",
          content: [
            { type: "input_text", text: "look" },
            { type: "input_image", detail: "auto", image_url: "data:image/png;base64," },
          ],
        },
        { type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text: "hm" }] },
        { type: "message", role: "assistant", id: "msg_1", content: [{ type: "output_text", text: "ok" }] },
        { type: "function_call", id: "fc_1", call_id: "c1", name: "read", arguments: '{"path":"a"}' },
        { type: "function_call_output", call_id: "c1", output: [{ type: "input_text", text: "found" }] },
        { role: "user", content: [{ type: "input_text", text: "go on" }] },
      ],
    },
  ],
  [
    "anthropic",
    {
      tools: [tools],
      system: [{ type: "text", text: "be brief" }],
      messages: [
        {
          role: "user",
          content: [
            { type: "text", text: "look" },
            { type: "image", source: {} },
          ],
        },
        {
          role: "assistant",
          content: [
            { type: "thinking", thinking: "hm", signature: "s" },
            { type: "text", text: "ok" },
            { type: "tool_use", id: "c1", name: "read", input: { path: "a" } },
          ],
        },
        {
          role: "user",
          content: [
            { type: "tool_result", tool_use_id: "c1", content: [{ type: "text", text: "found" }] },
            { type: "text", text: "go on" },
          ],
        },
      ],
    },
  ],
  [
    "google",
    {
      tools: [{ functionDeclarations: [{ name: "read" }] }],
      systemInstruction: { parts: [{ text: "be brief" }] },
      contents: [
        { role: "user", parts: [{ text: "look" }, { inlineData: { mimeType: "image/png", data: "" } }] },
        {
          role: "model",
          parts: [
            { text: "hm", thought: true },
            { text: "ok" },
            { functionCall: { id: "c1", name: "read", args: { path: "a" } } },
          ],
        },
        {
          role: "user",
          parts: [{ functionResponse: { id: "c1", name: "read", response: { output: "found" } } }, { text: "go on" }],
        },
      ],
    },
  ],
] as const)("a request over %s is recorded in the one shape", async (api, more) => {
  await using provider = await startProvider();
  const { status } = await ask(provider, api, request(api, "", more as unknown as Json));
  const [entry] = provider.requests;
  expect([status, entry?.violations, entry?.toolNames]).toEqual([200, [], ["read"]]);
  expect(entry?.messages.map((message) => message.role).slice(0, 3)).toEqual(["system", "user", "assistant"]);
  expect(entry?.messages[1]).toMatchObject({ texts: ["look"], imageCount: 1 });
  expect(entry?.messages[2]).toMatchObject({
    texts: ["ok"],
    thinking: ["hm"],
    toolCalls: [{ id: "c1", name: "read", arguments: { path: "a" } }],
  });
  expect(entry?.messages.flatMap((message) => message.toolResults)).toEqual([
    { callId: "c1", text: "found", isError: false },
  ]);
  expect(entry?.messages.at(-1)?.texts).toEqual(["go on"]);
});

test("texts are found and counted in messages and tool results, within the requested roles", async () => {
  await using provider = await startProvider();
  const messages = [
    { role: "system", content: "marker" },
    { role: "user", content: "marker and marker" },
    {
      role: "assistant",
      content: null,
      tool_calls: [{ id: "c", type: "function", function: { name: "f", arguments: '"marker"' } }],
    },
    { role: "tool", tool_call_id: "c", content: "marker" },
  ];
  await ask(provider, "openai", request("openai", "", { messages }));
  const [entry] = provider.requests;
  expect(entry?.countText("marker")).toBe(4);
  expect(entry?.countText("marker", { roles: ["user"] })).toBe(2);
  expect(entry?.hasText("marker", { roles: ["assistant"] })).toBe(false);
  expect(entry?.countText("")).toBe(0);
});

test("credentials are redacted in headers and in the path", async () => {
  await using provider = await startProvider();
  const headers = {
    authorization: "Bearer hush",
    "x-api-key": "hush",
    "x-goog-api-key": "hush",
    cookie: "hush",
    "x-auth-token": "hush",
    "x-kept": "shown",
  };
  await (await post(`${urlOf(provider, "google")}&key=hush&x=1`, request("google"), { headers })).text();
  const [entry] = provider.requests;
  expect(JSON.stringify([entry?.headers, entry?.path])).not.toContain("hush");
  expect(entry?.headers["x-kept"]).toBe("shown");
  expect(entry?.path).toBe("/v1beta/models/model-1:streamGenerateContent?alt=sse&key=[redacted]&x=1");
});

test("a waiter gets the first request that matches, past or future", async () => {
  await using provider = await startProvider();
  await ask(provider, "openai", request("openai", "one"));
  await expect(provider.waitForRequest((entry) => entry.hasText("one"))).resolves.toMatchObject({ n: 1 });
  const two = provider.waitForRequest((entry) => entry.hasText("two"));
  await ask(provider, "openai", request("openai", "two"));
  await ask(provider, "openai", request("openai", "two"));
  expect((await two).n).toBe(2);
});

test("a waiter gives up after its time and lists the received requests", async () => {
  await using provider = await startProvider();
  await ask(provider, "openai", request("openai", "something else"));
  const waiting = provider.waitForRequest((entry) => entry.hasText("expected"), { timeoutMs: 5 });
  await expect(waiting).rejects.toThrow(
    /within 5 ms[\s\S]*1\. openai, 1 messages, answered, last user: "something else"/,
  );
});

test("a waiter can be cancelled, and a predicate that throws fails only its waiter", async () => {
  await using provider = await startProvider();
  const reason = new Error("enough");
  await expect(provider.waitForRequest(undefined, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  const broken = provider.waitForRequest(() => {
    throw new Error("my own bug");
  });
  const fine = provider.waitForRequest();
  await Promise.all([expect(broken).rejects.toThrow("my own bug"), ask(provider, "openai")]);
  expect((await fine).n).toBe(1);
});

test("a client that disconnects in the middle of its request is recorded and takes no step", async () => {
  await using provider = await startProvider({ script: ["kept"] });
  const socket = connect(Number(new URL(provider.url).port), "127.0.0.1");
  socket.write("POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{");
  socket.end();
  const entry = await provider.waitForRequest();
  expect(await entry.ended).toBe("closed_by_client");
  expect([entry.bodyBytes, provider.remainingSteps]).toEqual([1, 1]);
  socket.destroy();
});

test("times are in order", async () => {
  await using provider = await startProvider();
  await ask(provider, "openai");
  const [entry] = provider.requests;
  await entry?.ended;
  const times = [entry?.receivedAt, entry?.headersSentAt, entry?.endedAt];
  expect(times).toEqual(times.toSorted());
  expect(entry?.clientClosedAt).toBeUndefined();
});
