import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type WebSocket, WebSocketServer } from "ws";
import { commands } from "../../../cli/commands.ts";
import { InterruptedError } from "../../../cli/errors.ts";
import type { Command, CommandName, Invocation } from "../../../cli/invocation.ts";
import { loaders } from "../../../cli/loaders.ts";
import { exampleValue } from "../../../protocol/examples.ts";
import type { JsonSchema } from "../../../protocol/json-schema.ts";
import { isMethodName, type MethodName, methods } from "../../../protocol/methods.ts";
import { type NotificationName, notifications } from "../../../protocol/notifications.ts";
import { PROTOCOL_VERSION } from "../../../protocol/wire.ts";
import { memoryOutput } from "./memory-output.ts";

/**
 * Clears a screen, sets a title, colours, reverses text, and begins a line that looks like one of the command line's.
 */
const evil = "\u001b[2J\u001b]0;t\u0007\u009b31m\u001b[34m\u202e\u2066\r\nFORGED";
const sessionId = "01920000-0000-7000-8000-000000000001";
const dialogId = "01920000-0000-7000-8000-000000000004";

/** Replaces each text in a value whose schema allows any text, and any word of an open list. */
function poisoned(schema: JsonSchema, value: unknown): unknown {
  const [first] = schema.anyOf ?? [];
  if (first !== undefined) return poisoned(first, value);
  if (typeof value === "string") {
    const isFree = schema.pattern === undefined && schema.const === undefined;
    return isFree && (schema.maxLength ?? 1_000) > 2 * evil.length ? `${value}${evil}` : value;
  }
  if (Array.isArray(value)) return value.map((item) => poisoned(schema.items ?? {}, item));
  if (typeof value !== "object" || value === null) return value;
  const [rest = {}] = Object.values(schema.patternProperties ?? {});
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, poisoned(schema.properties?.[key] ?? rest, item)]),
  );
}

/** Returns each result of a daemon. */
type Answers = (method: MethodName) => unknown;

const hostileAnswers: Answers = (method) => {
  const { result } = methods[method];
  const value = poisoned(result as JsonSchema, exampleValue(result, { withOptional: true })) as Record<string, unknown>;
  if (method === "daemon/info")
    return { ...value, pid: process.pid, protocol: PROTOCOL_VERSION, version: `9.9.9${evil}` };
  if (method === "dialog/list") return { ...value, next: undefined };
  if (method === "session/events")
    return { ...value, after: 1, cursor: 1, events: hostileNotifications().filter(({ params }) => "seq" in params) };
  return value;
};

function hostileNotifications(): { method: string; params: Record<string, unknown> }[] {
  const piEvents = [
    { type: "message_update", assistantMessageEvent: { type: "text_delta", contentIndex: 0, delta: `text${evil}` } },
    { type: "tool_execution_start", toolCallId: evil, toolName: `bash${evil}`, args: { command: evil } },
    { type: "tool_execution_end", toolCallId: evil, toolName: `bash${evil}`, isError: true, result: { content: [] } },
    { type: `strange${evil}`, reason: evil },
    { type: "message_end", message: 7 },
    { type: "message_end", message: { role: 7, content: 7 } },
    { type: "message_end", message: { role: "assistant", content: [null, { type: "text", text: 7 }] } },
    { type: "message_update", assistantMessageEvent: null },
    { type: "tool_execution_start", toolName: 7, args: null },
    { type: "rpcd_entry", entry: { type: 7, message: {} } },
    { type: "extension_ui_request", method: "notify", message: `said${evil}`, notifyType: evil },
    { type: "extension_ui_request", method: "setStatus", statusKey: evil, statusText: `status${evil}` },
    { type: "extension_ui_request", method: 7, title: evil },
  ];
  const named = (Object.keys(notifications) as NotificationName[]).map((method) => {
    const schema = notifications[method].params as JsonSchema;
    const params = poisoned(schema, exampleValue(schema, { withOptional: true })) as Record<string, unknown>;
    return { method: method as string, params };
  });
  const event = named.find(({ method }) => method === "session/event");
  return [...piEvents.map((one) => ({ method: "session/event", params: { ...event?.params, event: one } })), ...named];
}

/** A malicious daemon. After a subscription it sends each notification, and ends. */
class FakeDaemon implements AsyncDisposable {
  readonly stateDir = mkdtempSync(join(tmpdir(), "hostile-"));
  readonly #server = createServer();
  readonly #webSockets = new WebSocketServer({ noServer: true });
  answers: Answers = hostileAnswers;
  onClosed = (): void => {};

  async open(): Promise<this> {
    const socketPath = join(this.stateDir, "s");
    this.#server.on("request", (request, response) => {
      let body = "";
      request.setEncoding("utf8").on("data", (text: string) => {
        body += text;
      });
      request.on("end", () => response.end(JSON.stringify(this.#answer(JSON.parse(body)))));
    });
    this.#server.on("upgrade", (request, socket, head) =>
      this.#webSockets.handleUpgrade(request, socket, head, (webSocket) => this.#converse(webSocket)),
    );
    await new Promise<void>((resolve) => this.#server.listen(socketPath, resolve));
    const file = { pid: process.pid, version: `9.9.9${evil}`, protocol: PROTOCOL_VERSION, url: "http://127.0.0.1:9" };
    const all = { ...file, socketPath, token: "t".repeat(43) };
    writeFileSync(join(this.stateDir, "daemon.json"), JSON.stringify(all), { mode: 0o600 });
    return this;
  }

  #answer({ id, method }: { readonly id: unknown; readonly method: string }): object {
    if (!isMethodName(method)) return { jsonrpc: "2.0", id, result: null };
    return { jsonrpc: "2.0", id, result: this.answers(method) };
  }

  #converse(webSocket: WebSocket): void {
    webSocket.on("close", () => this.onClosed());
    webSocket.on("message", (data) => {
      const request = JSON.parse(data.toString());
      if (request.id === undefined) return;
      webSocket.send(JSON.stringify(this.#answer(request)));
      if (request.method !== "session/subscribe" && request.method !== "session/prompt") return;
      for (const { method, params } of hostileNotifications())
        webSocket.send(JSON.stringify({ jsonrpc: "2.0", method, params }));
      webSocket.close(1001, "going");
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const webSocket of this.#webSockets.clients) webSocket.terminate();
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
    rmSync(this.stateDir, { recursive: true });
  }
}

const calls: readonly (readonly [name: CommandName, words?: readonly string[], options?: object])[] = [
  ["start"],
  ["status"],
  ["ls"],
  ["ls", [], { ids: true }],
  ["new"],
  ["prompt", ["last", "hello"]],
  ["prompt", ["last", "hello"], { "no-wait": true }],
  ["attach", ["last"]],
  ["tail", ["last"], { "no-follow": true }],
  ["abort", ["last"]],
  ["steer", ["last", "hello"]],
  ["follow-up", ["last", "hello"]],
  ["queue", ["show", "last"]],
  ["queue", ["clear", "last"]],
  ["model", ["show", "last"]],
  ["model", ["list"]],
  ["model", ["list", "last"]],
  ["model", ["set", "last", "model"]],
  ["compact", ["last"]],
  ["rename", ["last", "name"]],
  ["tree", ["last"]],
  ["tree", ["last"], { all: true }],
  ["export", ["last", "/dev/null/page.html"]],
  ["push", ["last", "text"], { type: "a" }],
  ["push", ["last", "text"], { type: "a", wait: "delivered" }],
  ["deliveries"],
  ["deliveries", [], { watch: true }],
  ["delivery", ["show", "d-1"]],
  ["delivery", ["cancel", "d-1"]],
  ["delivery", ["resend", "d-1"]],
  ["open"],
  ["open", [sessionId]],
  ["fork", ["last"]],
  ["fork", ["last"], { list: true }],
  ["fork", ["last"], { at: "a1b2c3d4" }],
  ["hibernate", ["last"]],
  ["close", ["last"]],
  ["rm", ["last"], { yes: true }],
  ["cost", ["last"]],
  ["context", ["export", "last"]],
  ["context", ["show", "last"]],
  ["dialogs"],
  ["dialogs", ["last"]],
  ["dialog", ["show", dialogId]],
  ["dialog", ["answer", dialogId, "yes"]],
  ["token", ["create", "ci"]],
  ["token", ["list"]],
  ["token", ["rotate", "ci"]],
  ["token", ["revoke", "ci"]],
  ["web", [], { print: true }],
  ["web", [], { close: true }],
];

const titled = calls.map((call) => [`${call[0]} ${JSON.stringify(call.slice(1))}`, call] as const);

/** Commands that print nothing of the daemon's answers, or print them unchanged for programs. */
const others = [
  "stop",
  "config",
  "connect",
  "acp",
  "rpc",
  "pi",
  "doctor",
  "service",
  "logs",
  "docs",
  "completion",
  "demo",
  "try",
  "help",
];

// biome-ignore-start lint/suspicious/noControlCharactersInRegex: the test looks for them
/** Characters that control a terminal, except line ends and tabs. */
const ordering = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/;
const ownStyles = /\u001b\[(?:1|2|22|3[1-356]|39)m/g;
// biome-ignore-end lint/suspicious/noControlCharactersInRegex: the test looks for them

/** Commands that show complete texts; the others print one line per item. */
const manyLines: readonly string[] = ["prompt", "attach", "dialog", "context"];

interface Printed {
  readonly text: string;
  readonly error: unknown;
}

describe("a hostile daemon", () => {
  let daemon: FakeDaemon;
  const before = process.env["PI_RPCD_VALIDATE"];
  beforeAll(async () => {
    daemon = await new FakeDaemon().open();
    delete process.env["PI_RPCD_VALIDATE"];
  });
  afterAll(async () => {
    await daemon[Symbol.asyncDispose]();
    if (before !== undefined) process.env["PI_RPCD_VALIDATE"] = before;
  });

  async function run([name, words = [], options = {}]: (typeof calls)[number], json = false): Promise<Printed> {
    const interruption = new AbortController();
    daemon.onClosed = () => interruption.abort(new InterruptedError("SIGTERM"));
    const { output, stdout, stderr } = memoryOutput({ isTerminal: true, columns: 200, json });
    const command = (await loaders[name as keyof typeof loaders]()) as Command<CommandName>;
    const all = {
      "state-dir": daemon.stateDir,
      ...("no-start" in commands[name].options && { "no-start": true }),
      ...options,
    };
    const invocation = { options: all, arguments: words, output, env: { HOME: "/" }, signal: interruption.signal };
    let error: unknown;
    try {
      await command(invocation as unknown as Invocation<CommandName>);
    } catch (thrown) {
      error = thrown;
      output.error(thrown);
    }
    return { text: stdout() + stderr(), error };
  }

  test("is asked by all commands of this test, except those that print none of its text", () => {
    const tried = new Set<string>([...calls.map(([name]) => name), ...others]);
    expect(Object.keys(commands).filter((name) => !tried.has(name))).toEqual([]);
  });

  test.each(titled)("cannot control the terminal through the output of %s", async (_title, call) => {
    daemon.answers = hostileAnswers;
    for (const json of [false, true]) {
      const { text, error } = await run(call, json);
      expect(text.replaceAll(ownStyles, "")).not.toMatch(ordering);
      if (!manyLines.includes(call[0])) expect(text).not.toMatch(/^FORGED/m);
      if (error instanceof TypeError || error instanceof RangeError) throw error;
      expect(text).not.toMatch(/undefined|NaN|\(unexpected\)/);
    }
  });

  test.each(titled)("that sends nonsense is named in one sentence by %s", async (_title, call) => {
    const nonsense: readonly Answers[] = [
      () => null,
      () => [],
      () => ({}),
      (method) =>
        method === "dialog/list"
          ? exampleValue(methods[method].result, { withOptional: true })
          : hostileAnswers(method),
      (method) => swapped(exampleValue(methods[method].result, { withOptional: true })),
      (method) => (method === "daemon/info" || method === "session/list" ? hostileAnswers(method) : { sessions: 7 }),
    ];
    for (const answers of nonsense) {
      daemon.answers = answers;
      const { text, error } = await run(call);
      if (error instanceof TypeError || error instanceof RangeError) throw error;
      expect(text).not.toMatch(/Cannot read|is not (?:a function|iterable)|undefined|NaN|\(unexpected\)/);
    }
  });
});

/** The same shape with other types. */
function swapped(value: unknown): unknown {
  if (Array.isArray(value)) return { 0: value };
  if (typeof value === "object" && value !== null)
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, swapped(item)]));
  return typeof value === "string" ? 7 : "seven";
}
