import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { anthropic } from "../../../provider/dialects/anthropic.ts";
import { google } from "../../../provider/dialects/google.ts";
import { openai } from "../../../provider/dialects/openai.ts";
import { openaiResponses } from "../../../provider/dialects/openai-responses.ts";
import { startProvider } from "../../../provider/server.ts";
import { type Api, apis, ask, emptyRequest, type Json, request } from "./requests.ts";

type Messages = readonly Json[];
const dialects = { openai, "openai-responses": openaiResponses, anthropic, google };
const lax = { models: undefined, systemMessages: false, userFirst: false };

function violations(api: Api, body: Json, rules = lax): readonly string[] {
  return dialects[api].violations(body, { model: "model-1" }, rules).map((violation) => violation.message);
}

const long = "x".repeat(65);
const user = { role: "user", content: "hi" };

describe("OpenAI refuses", () => {
  const calls = (...ids: string[]): Json => ({
    role: "assistant",
    content: null,
    tool_calls: ids.map((id) => ({ id, type: "function", function: { name: "f", arguments: "{}" } })),
  });
  const named = (name: string): Json => ({
    ...calls("a"),
    tool_calls: [{ id: "a", type: "function", function: { name, arguments: "{}" } }],
  });
  const result = (id: string): Json => ({ role: "tool", tool_call_id: id, content: "r" });
  const said = (messages: Messages): readonly string[] => violations("openai", request("openai", "", { messages }));

  test.each<[string, Messages, RegExp]>([
    ["a result without a call", [user, result("a")], /must be a response to a preceeding message with 'tool_calls'/],
    ["a result of an earlier turn's call", [user, calls("a"), result("a"), user, result("a")], /preceeding/],
    ["an unanswered call", [user, calls("a", "b"), result("a"), user], /did not have response messages: b/],
    ["an unanswered call at the end", [user, calls("a")], /did not have response messages: a/],
    ["a call that is answered too late", [user, calls("a"), user, result("a")], /did not have response messages: a/],
    ["two results for one call", [user, calls("a"), result("a"), result("a")], /Duplicate tool message/],
    ["two calls of one id", [user, calls("a", "a"), result("a")], /Duplicate value/],
    ["a bad tool name", [user, named("a b"), result("a")], /tool_calls\[0\].function.name/],
    ["a long tool name", [user, named(long), result("a")], /function.name/],
    ["a bad call id", [user, calls("a|b"), result("a|b")], /tool_calls\[0\].id/],
    ["an empty call id", [user, calls(""), result("")], /tool_calls\[0\].id/],
    ["a long call id", [user, calls("a".repeat(41)), result("a".repeat(41))], /\.id': string too long.* 40, .* 41 /],
    ["no content", [{ role: "user" }], /expected a string, got null/],
    ["an assistant with neither content nor calls", [user, { role: "assistant", content: null }], /got null/],
    ["an empty list of calls", [user, { role: "assistant", content: "x", tool_calls: [] }], /empty array/],
    ["an unknown role", [{ role: "custom", content: "x" }], /Invalid value: 'custom'/],
    ["no messages", [], /Missing required parameter: 'messages'/],
    ["an empty text", [{ role: "user", content: "" }], /messages\[0\].content': text must not be empty/],
    ["an empty text of an assistant", [user, { role: "assistant", content: "" }], /must not be empty/],
    ["an empty part", [{ role: "user", content: [{ type: "text", text: "" }] }], /must not be empty/],
  ])("%s", (_, messages, expected) => {
    expect(said(messages).join("\n")).toMatch(expected);
  });

  test("missing fields besides the messages", () => {
    expect(violations("openai", { messages: [user] })).toEqual(["you must provide a model parameter"]);
    expect(violations("openai", { model: "m", messages: [user], stream_options: {} })).toEqual([
      expect.stringContaining("stream_options"),
    ]);
    const tool = { type: "function", function: { name: "a.b" } };
    expect(violations("openai", { model: "m", messages: [user], tools: [tool] })).toEqual([
      expect.stringContaining("tools[0]"),
    ]);
  });

  test("more than four cache marks", () => {
    const cache_control = { type: "ephemeral" };
    const marked = { role: "user", content: [{ type: "text", text: "x", cache_control }] };
    const tools = [{ type: "function", function: { name: "f" }, cache_control }];
    const messages = Array.from({ length: 4 }, () => marked);
    expect(violations("openai", request("openai", "", { messages }))).toEqual([]);
    expect(violations("openai", request("openai", "", { messages, tools }))).toEqual([
      expect.stringMatching(/^A maximum of 4 .* Found 5\.$/),
    ]);
  });

  test.each<[string, Messages]>([
    ["several calls, answered in any order", [user, calls("a", "b"), result("b"), result("a"), user]],
    ["an assistant at the end", [user, { role: "assistant", content: "hi" }]],
    ["an assistant at the beginning", [{ role: "system", content: "s" }, { role: "assistant", content: "hi" }, user]],
    [
      "system messages anywhere, users in a row",
      [{ role: "system", content: "s" }, user, { role: "system", content: "s" }, user],
    ],
    ["an empty string in addition to calls", [user, { ...calls("a"), content: "" }, result("a")]],
    ["content as parts", [{ role: "user", content: [{ type: "text", text: "x" }] }]],
  ])("but not %s", (_, messages) => {
    expect(said(messages)).toEqual([]);
  });
});

test("with userFirst a conversation may not begin with an assistant at either API of OpenAI's", () => {
  const messages = [
    { role: "system", content: "s" },
    { role: "assistant", content: "x" },
  ];
  const input = [
    { role: "developer", content: "s" },
    { type: "message", role: "assistant", content: [{ type: "output_text", text: "x" }] },
  ];
  for (const [api, body] of [
    ["openai", { model: "m", messages }],
    ["openai-responses", { model: "m", input }],
  ] as const) {
    expect(violations(api, body)).toEqual([]);
    expect(violations(api, body, { ...lax, userFirst: true })).toEqual([
      expect.stringMatching(/must be from the user/),
    ]);
  }
});

describe("OpenAI Responses refuses", () => {
  const call = (id: string, more: Json = {}): Json => ({
    type: "function_call",
    call_id: id,
    name: "f",
    arguments: "{}",
    ...more,
  });
  const result = (id: string, output: unknown = "r"): Json => ({ type: "function_call_output", call_id: id, output });
  const reasoning = { type: "reasoning", id: "rs_1", summary: [] };
  const says = (text: string, more: Json = {}): Json => ({
    type: "message",
    role: "assistant",
    content: [{ type: "output_text", text, annotations: [] }],
    ...more,
  });
  const said = (input: Messages, more: Json = {}): readonly string[] =>
    violations("openai-responses", request("openai-responses", "", { input, ...more }));

  test.each<[string, Messages, RegExp]>([
    ["a result without a call", [user, result("a")], /^No tool call found for function call output with call_id a\.$/],
    ["a result before its call", [user, result("a"), call("a"), result("a")], /^No tool call found/],
    ["an unanswered call", [user, call("a"), call("b"), result("a"), user], /^No tool output found .* call b\.$/],
    ["an unanswered call at the end", [user, call("a")], /^No tool output found for function call a\.$/],
    ["two results for one call", [user, call("a"), result("a"), result("a")], /^Duplicate function_call_output.* 'a'/],
    ["two calls of one id", [user, call("a"), result("a"), call("a")], /^Duplicate 'call_id': a$/],
    ["a long call id", [user, call(long), result(long)], /input\[1\].call_id': string too long.* length 65 /],
    ["pi's own form of an id", [user, call("a|fc_b"), result("a|fc_b")], /'a\|fc_b'. Expected an ID that contains/],
    ["an empty call id", [user, call(""), result("")], /input\[1\].call_id': empty string/],
    ["a long item id", [user, call("a", { id: `fc_${long}` }), result("a")], /input\[1\].id': string too long/],
    ["an item id of another kind", [user, call("a", { id: "msg_1" }), result("a")], /an ID that begins with 'fc'/],
    ["an item id with a space", [user, call("a", { id: "fc_ b" }), result("a")], /input\[1\].id': 'fc_ b'/],
    [
      "two items of one id",
      [user, call("a", { id: "fc_1" }), call("b", { id: "fc_1" }), result("a"), result("b")],
      /^Duplicate item found with id fc_1/,
    ],
    ["a bad tool name", [user, call("a", { name: "a b" }), result("a")], /input\[1\].name': string does not match/],
    ["a long tool name", [user, call("a", { name: long }), result("a")], /input\[1\].name': string too long/],
    ["a call without a name", [user, call("a", { name: null }), result("a")], /required parameter: 'input\[1\].name'/],
    [
      "arguments that are not a string",
      [user, call("a", { arguments: {} }), result("a")],
      /type for 'input\[1\].argum/,
    ],
    ["a result without output", [user, call("a"), result("a", null)], /required parameter: 'input\[2\].output'/],
    ["an empty text", [{ role: "user", content: "" }], /input\[0\].content': empty string/],
    ["a message without content", [{ role: "user", content: [] }], /input\[0\].content': empty string/],
    ["an empty part", [{ role: "user", content: [{ type: "input_text", text: "" }] }], /content\[0\].text': empty/],
    ["an empty text of an assistant", [user, says("")], /input\[1\].content\[0\].text': empty string/],
    ["a part of another API", [{ role: "user", content: [{ type: "text", text: "x" }] }], /value: 'text'/],
    ["a part of the other side", [user, { ...says("x"), role: "user" }], /value: 'output_text'.*'input_text'/],
    ["an unknown role", [{ role: "tool", content: "x" }], /^Invalid value: 'tool'.*'developer'/],
    ["an unknown kind of item", [user, { type: "tool_use" }], /^Invalid value: 'tool_use'.*'function_call'/],
    ["a kind that every object has", [user, { type: "toString" }], /^Invalid value: 'toString'/],
    ["reasoning that led to nothing", [user, reasoning], /'rs_1' of type 'reasoning' was provided without its req/],
    ["reasoning without a summary", [user, { ...reasoning, summary: null }, says("x")], /input\[1\].summary/],
    ["no input", [], /^Missing required parameter: 'input'/],
  ])("%s", (_, input, expected) => {
    expect(said(input).join("\n")).toMatch(expected);
  });

  test("missing fields besides the input", () => {
    expect(violations("openai-responses", { input: "hi" })).toEqual(["you must provide a model parameter"]);
    expect(said([user], { max_output_tokens: 1 })).toEqual([
      "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got 1 instead.",
    ]);
    expect(said([user], { tools: [{ type: "function", name: "a.b" }, { type: "web_search" }] })).toEqual([
      expect.stringContaining("tools[0].name"),
    ]);
  });

  test.each<[string, Messages]>([
    [
      "calls answered in any order and later, reasoning before them",
      [user, reasoning, says("x"), call("a", { id: "fc_1" }), call("b"), result("b"), user, result("a"), user],
    ],
    ["an assistant at the end", [{ role: "system", content: "s" }, user, says("hi", { id: "msg_1" })]],
    ["results as parts", [user, call("a"), result("a", [{ type: "input_text", text: "r" }]), { ...user }]],
    ["an empty result", [user, call("a"), result("a", "")]],
  ])("but not %s", (_, input) => {
    expect(said(input)).toEqual([]);
  });
});

describe("Anthropic refuses", () => {
  const assistant = (...content: Json[]): Json => ({ role: "assistant", content });
  const users = (...content: Json[]): Json => ({ role: "user", content });
  const use = (id: string, more: Json = {}): Json => ({ type: "tool_use", id, name: "f", input: {}, ...more });
  const result = (id: string, content: unknown = "r"): Json => ({ type: "tool_result", tool_use_id: id, content });
  const text = (value: string): Json => ({ type: "text", text: value });
  const said = (messages: Messages, more: Json = {}): readonly string[] =>
    violations("anthropic", request("anthropic", "", { messages, ...more }));

  test.each<[string, Messages, RegExp]>([
    ["an assistant first", [assistant(text("x")), user], /first message must use the "user" role/],
    ["an assistant last", [user, assistant(text("x"))], /must end with a user message/],
    ["a result without a call", [user, assistant(text("x")), users(result("a"))], /unexpected `tool_use_id`.*: a/],
    ["a result in the first message", [users(result("a"))], /unexpected `tool_use_id`/],
    [
      "a result of an earlier turn",
      [user, assistant(use("a")), users(result("a")), assistant(text("x")), users(result("a"))],
      /unexpected/,
    ],
    [
      "an unanswered call",
      [user, assistant(use("a"), use("b")), users(result("a"))],
      /messages.1: .*without `tool_result`.*: b/,
    ],
    ["a call answered after text", [user, assistant(use("a")), users(text("x"), result("a"))], /without `tool_result`/],
    [
      "a call answered a turn too late",
      [user, assistant(use("a")), user, assistant(text("x")), users(result("a"))],
      /without `tool_result`/,
    ],
    [
      "two results for one call",
      [user, assistant(use("a")), users(result("a"), result("a"))],
      /must have a single result/,
    ],
    [
      "two calls of one id",
      [user, assistant(use("a")), users(result("a")), assistant(use("a")), users(result("a"))],
      /ids must be unique/,
    ],
    [
      "thoughts that nothing follows",
      [user, assistant(text("x"), { type: "thinking", thinking: "t", signature: "s" }), user],
      /^messages\.1: The final block in an assistant message cannot be `thinking`\.$/,
    ],
    ["a call of a user", [users(use("a"))], /can only be in `assistant` messages/],
    ["a result of an assistant", [user, assistant(result("a")), user], /can only be in `user` messages/],
    ["an empty text", [users(text(""))], /messages.0.content.0: text content blocks must be non-empty/],
    ["a blank text", [users(text(" \n"))], /must contain non-whitespace text/],
    [
      "an empty text in a result",
      [user, assistant(use("a")), users(result("a", [text("")]))],
      /tool_result.content: text content blocks must be non-empty/,
    ],
    ["an empty message", [users()], /must have non-empty content/],
    [
      "thinking without a signature",
      [user, assistant({ type: "thinking", thinking: "x" }), user],
      /signature: Field req/,
    ],
    ["hidden thinking without data", [user, assistant({ type: "redacted_thinking" }), user], /data: Field required/],
    ["an empty string", [{ role: "user", content: "" }], /must have non-empty content/],
    ["no content", [{ role: "user" }], /content: Field required/],
    ["a bad call id", [user, assistant(use("a|b")), users(result("a|b"))], /tool_use.id: String should match pattern/],
    [
      "a bad tool name",
      [user, assistant(use("a", { name: "a b" })), users(result("a"))],
      /tool_use.name: String should match/,
    ],
    [
      "an input that is no object",
      [user, assistant(use("a", { input: "{}" })), users(result("a"))],
      /Input should be a valid dictionary/,
    ],
    ["a system message", [user, { role: "system", content: "x" }, user], /role: Input should be 'user' or 'assistant'/],
    ["no messages", [], /at least one message is required/],
  ])("%s", (_, messages, expected) => {
    expect(said(messages).join("\n")).toMatch(expected);
  });

  test("missing fields besides the messages", () => {
    expect(violations("anthropic", {})).toEqual([
      "model: Field required",
      "max_tokens: Field required",
      "messages: Field required",
      "messages: at least one message is required",
    ]);
    expect(said([user], { max_tokens: 0 })).toEqual([expect.stringContaining("less than the minimum of 1")]);
    expect(said([user], { system: [text("")] })).toEqual(["system: text content blocks must be non-empty"]);
    expect(said([user], { tools: [{ name: "a" }, { name: "a" }, { name: "b c" }] })).toEqual([
      expect.stringContaining("tools.2.custom.name"),
      "tools: Tool names must be unique.",
    ]);
  });

  test("more than four cache marks, in any position", () => {
    const cache_control = { type: "ephemeral" };
    const marked = { ...text("x"), cache_control };
    const messages = [user, assistant(use("a", { cache_control })), users(result("a", [marked]), marked)];
    expect(said(messages, { system: [marked] })).toEqual([]);
    expect(said(messages, { system: [marked], tools: [{ name: "f", cache_control }] })).toEqual([
      "A maximum of 4 blocks with cache_control may be provided. Found 5.",
    ]);
  });

  test.each<[string, Messages]>([
    [
      "calls answered in any order, with text after them",
      [user, assistant(text("x"), use("a"), use("b")), users(result("b"), result("a"), text("y"))],
    ],
    [
      "results spread over users in a row",
      [user, assistant(use("a"), use("b")), users(result("a")), users(result("b")), user],
    ],
    ["texts as strings, users in a row", [user, user]],
  ])("but not %s", (_, messages) => {
    expect(said(messages)).toEqual([]);
  });

  test("but accepts system messages inside the conversation for models that take them", () => {
    const body = request("anthropic", "", { messages: [user, { role: "system", content: "x" }, user] });
    expect(violations("anthropic", body, { ...lax, systemMessages: true })).toEqual([]);
  });
});

describe("Google refuses", () => {
  const users = (...parts: Json[]): Json => ({ role: "user", parts });
  const model = (...parts: Json[]): Json => ({ role: "model", parts });
  const invoke = (name: string): Json => ({ functionCall: { name, args: {} } });
  const result = (name: string): Json => ({ functionResponse: { name, response: { output: "r" } } });
  const text = { text: "x" };
  const said = (contents: Messages): readonly string[] => violations("google", { contents });

  test.each<[string, Messages, RegExp]>([
    ["a response without a call", [users(text), model(text), users(result("f"))], /number of function response parts/],
    [
      "fewer responses than calls",
      [users(text), model(invoke("f"), invoke("f")), users(result("f"))],
      /number of function response parts/,
    ],
    ["a call without a response", [users(text), model(invoke("f")), users(text)], /number of function response parts/],
    ["a call at the end", [users(text), model(invoke("f"))], /number of function response parts/],
    ["a call at the start", [model(invoke("f")), users(result("f"))], /immediately after a user turn/],
    ["a model at the end", [users(text), model(text)], /end with a user role/],
    ["a bad name", [users(text), model(invoke("a b")), users(result("a b"))], /function.name/],
    ["a name with a digit first", [users(text), model(invoke("7z")), users(result("7z"))], /function.name/],
    ["a name with a dash first", [users(text), model(invoke("-x")), users(result("-x"))], /function.name/],
    ["an empty content", [users()], /parts must not be empty/],
    ["an unknown role", [{ role: "tool", parts: [text] }], /valid role/],
    ["no contents", [], /contents is not specified/],
  ])("%s", (_, contents, expected) => {
    expect(said(contents).join("\n")).toMatch(expected);
  });

  test.each<[string, Messages]>([
    [
      "responses in any order, with text",
      [users(text), model(text, invoke("f"), invoke("g")), users(result("g"), result("f")), users(text)],
    ],
    ["a content without a role", [{ parts: [text] }]],
  ])("but not %s", (_, contents) => {
    expect(said(contents)).toEqual([]);
  });
});

describe.each(apis)("over %s", (api) => {
  test("a refusal is a 400 with the first violation; all are recorded, and no step is used up", async () => {
    await using provider = await startProvider({ script: ["kept"] });
    const { status, json } = await ask(provider, api, emptyRequest(api));
    const [entry] = provider.requests;
    expect(status).toBe(400);
    expect((json["error"] as Json)["message"]).toBe(entry?.violations[0]);
    expect([entry?.outcome ?? (await entry?.ended), provider.remainingSteps]).toEqual(["refused", 1]);
  });

  test("a lone surrogate anywhere is refused, and an escaped one in text is not", async () => {
    await using provider = await startProvider();
    for (const more of [{ more: [{ a: "\ud800" }] }, { more: { "\udc00": 1 } }]) {
      const { status, text } = await ask(provider, api, request(api, "hello", more));
      expect([status, text]).toEqual([400, expect.stringContaining("surrogate")]);
    }
    const whole = request(api, "🙂", { more: "\\ud800" });
    expect((await ask(provider, api, whole)).status).toBe(200);
  });

  test("an unknown model is a 404 if there is a list of models", async () => {
    await using provider = await startProvider({ models: ["other"] });
    const { status, text } = await ask(provider, api);
    expect([status, text]).toEqual([404, expect.stringContaining("model-1")]);
    await using known = await startProvider({ models: ["model-1"] });
    expect((await ask(known, api)).status).toBe(200);
  });

  test("nothing is refused when not strict", async () => {
    await using provider = await startProvider({ strict: false, models: ["other"] });
    expect((await ask(provider, api, emptyRequest(api))).status).toBe(200);
    expect(provider.requests[0]?.violations).toEqual([]);
  });

  test("no body makes reading or checking throw", () => {
    const keys = [
      "messages",
      "contents",
      "input",
      "output",
      "call_id",
      "role",
      "content",
      "parts",
      "tools",
      "tool_calls",
      "function",
      "type",
      "text",
      "system",
      "id",
    ];
    const value = fc.letrec((tie) => ({
      node: fc.oneof(
        { maxDepth: 5 },
        fc.constantFrom(
          null,
          true,
          1,
          "",
          "user",
          "assistant",
          "tool",
          "text",
          "tool_use",
          "tool_result",
          "function_call",
        ),
        fc.array(tie("node"), { maxLength: 3 }),
        fc.dictionary(fc.constantFrom(...keys), tie("node"), { maxKeys: 5 }),
      ),
    })).node;
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom(...keys), value), (body) => {
        const dialect = dialects[api];
        dialect.read(body, {});
        dialect.violations(body, {}, lax);
      }),
    );
  });
});
