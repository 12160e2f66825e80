import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { expect, onTestFinished, test } from "vitest";
import { InsertedPushes } from "../../../extension/delivery/inserted.ts";
import { Observer } from "../../../extension/delivery/observer.ts";
import type { OutwardBody } from "../../../extension/link/outbound.ts";
import { emptyMemory, type Memory } from "../../../extension/memory.ts";
import type { AgentMessage } from "../../../extension/pi-types.ts";
import { tellExtensions } from "../../../extension/provider/bus-events.ts";
import type { ProviderLevel } from "../../../protocol/provider-level.ts";
import { partial, unchecked } from "../../helpers/partial.ts";
import { session, user } from "./session.ts";

const userMessage = { role: "user", content: "Hello." } as AgentMessage;
const payload = { messages: [{ role: "user", content: "Hello, ä€😀." }] };
const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");
const facts = (value: unknown) => {
  const text = JSON.stringify(value);
  return { payloadBytes: Buffer.byteLength(text), payloadSha256: sha256(text) };
};
const assistant = (stopReason: string, errorMessage?: string): AgentMessage =>
  unchecked({ role: "assistant", api: "openai-completions", content: [], stopReason, errorMessage });
const accepted = {
  type: "after_provider_response",
  status: 200,
  headers: { "content-type": "text/event-stream", "x-request-id": "r", cookie: "c" },
} as const;

function observed(level: ProviderLevel, options: { memory?: Memory; maxBodyBytes?: number } = {}) {
  const directory = mkdtempSync(join(tmpdir(), "bodies-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const { memory = emptyMemory(), maxBodyBytes = 1_000 } = options;
  const frames: OutwardBody[] = [];
  const events: Readonly<Record<string, unknown>>[] = [];
  const observer = new Observer({
    memory,
    inserted: new InsertedPushes(memory.inserted),
    send: (frame) => frames.push(frame),
    tell: (channel, event) => events.push({ channel, ...event }),
  });
  const watch = (provider: ProviderLevel): void =>
    observer.requests.watch({ provider, bodyPrefix: join(directory, "body-"), maxBodyBytes });
  if (level !== "off") watch(level);
  const ctx = {
    sessionManager: session(user("u1")),
    signal: undefined,
    model: { provider: "p", id: "m", apiKey: "hidden" },
  } as unknown as ExtensionContext;
  const request = (sent: unknown = payload): void => {
    observer.offer([userMessage], ctx);
    observer.payload(sent);
    observer.headers(accepted);
    observer.messageStart(assistant("pending"), ctx);
    observer.messageEnd(assistant("stop"), ctx);
  };
  return { observer, memory, ctx, frames, events, directory, watch, request };
}

test("extensions get a summary of each request, and the daemon none unless it watches", () => {
  const { observer, ctx, events, frames, request } = observed("off");
  observer.offer([userMessage], ctx);
  observer.payload(payload);
  observer.messageStart(assistant("error", "529 no"), ctx);
  observer.messageEnd(assistant("error", "529 no"), ctx);
  request();
  request();
  expect(frames).toEqual([]);
  const [failed, retried] = [events[0]?.["requestId"], events[2]?.["requestId"]];
  const prepared = { channel: "provider_request_prepared", deliveryIds: [], messageCount: 1, ...facts(payload) };
  const model = { provider: "p", id: "m" };
  const ended = { deliveryIds: [], latencyMs: expect.any(Number) };
  expect(events.slice(0, 4)).toEqual([
    { ...prepared, requestId: failed, attempt: 1, model },
    {
      channel: "provider_request_failed",
      requestId: failed,
      attempt: 1,
      reason: "failed",
      status: 529,
      error: "529 no",
      ...ended,
    },
    { ...prepared, requestId: retried, attempt: 2, model },
    {
      channel: "provider_request_delivered",
      requestId: retried,
      attempt: 2,
      evidence: "headers",
      status: 200,
      headers: { "content-type": "text/event-stream", "x-request-id": "r", cookie: "[redacted]" },
      ...ended,
    },
  ]);
  expect(events.slice(4).map(({ attempt }) => attempt)).toEqual([1, 1]);
});

test("extensions get frozen copies, and one that throws changes nothing", () => {
  const given: Readonly<Record<string, unknown>>[] = [];
  const emit = (_channel: string, data: unknown): void => {
    given.push(data as Readonly<Record<string, unknown>>);
    throw new Error("A listener has thrown.");
  };
  const event = { requestId: "r", attempt: 1, deliveryIds: ["d"], latencyMs: 1, reason: "failed" } as const;
  tellExtensions({ events: { emit, on: () => () => {} } })("provider_request_failed", event);
  expect(given).toEqual([event]);
  expect([given[0], given[0]?.["deliveryIds"]].every(Object.isFrozen)).toBe(true);
  expect(given[0]?.["deliveryIds"]).not.toBe(event.deliveryIds);
});

test("a watched request has one report when it leaves and one when it ends", () => {
  const { request, frames, directory } = observed("summary");
  request();
  expect(frames).toEqual([
    {
      kind: "request",
      requestId: expect.any(String),
      deliveryIds: [],
      messageCount: 1,
      composition: { user: "Hello.".length },
      model: { provider: "p", id: "m" },
      ...facts(payload),
    },
    {
      kind: "requestEnd",
      requestId: (frames[0] as { requestId: string }).requestId,
      outcome: "delivered",
      evidence: "headers",
      status: 200,
      latencyMs: expect.any(Number),
      headers: { "content-type": "text/event-stream", "x-request-id": "r", cookie: "[redacted]" },
    },
  ]);
  expect(readdirSync(directory)).toEqual([]);
});

test("a request whose payload is never shown is reported with the verdict, before its end", () => {
  const { observer, ctx, frames } = observed("payload");
  observer.offer([userMessage], ctx);
  expect(frames).toEqual([]);
  observer.messageStart(assistant("error", "400 no"), ctx);
  expect(frames).toMatchObject([{ kind: "request" }, { kind: "requestEnd", outcome: "failed", status: 400 }]);
  expect(frames[0]).not.toHaveProperty("payloadBytes");
  expect(frames[0]).toMatchObject({ messages: { isLeft: true } });
  expect(frames[0]).not.toHaveProperty("payload");
});

test("the list and the payload are stored as private files, according to the level", () => {
  for (const [level, names] of [
    ["summary", []],
    ["messages", ["messages"]],
    ["payload", ["messages", "payload"]],
  ] as const) {
    const { request, frames, directory } = observed(level);
    request();
    const { requestId } = frames[0] as { requestId: string };
    expect(readdirSync(directory)).toEqual(names.map((name) => `body-${requestId}.${name}`));
    for (const name of names) {
      const path = join(directory, `body-${requestId}.${name}`);
      expect(JSON.parse(readFileSync(path, "utf8"))).toEqual(name === "payload" ? payload : [userMessage]);
      expect(statSync(path).mode & 0o777).toBe(0o600);
      expect(frames[0]).toMatchObject({ [name]: { bytes: statSync(path).size, isLeft: true } });
    }
  }
});

test("files that are too large, or that the daemon has not taken, are not stored", () => {
  const small = observed("payload", { maxBodyBytes: 40 });
  small.request();
  expect(small.frames[0]).toMatchObject({
    messages: { isLeft: true },
    payload: { bytes: facts(payload).payloadBytes, isLeft: false },
  });
  const untaken = observed("payload");
  for (let i = 0; i < 30; i += 1) untaken.request();
  expect(readdirSync(untaken.directory)).toHaveLength(16);
  expect(untaken.frames.at(-2)).toMatchObject({ kind: "request", messages: { isLeft: false } });
  rmSync(untaken.directory, { recursive: true });
  untaken.request();
  expect(untaken.frames.at(-2)).toMatchObject({ kind: "request", messages: { isLeft: false } });
  expect(untaken.frames.at(-1)).toMatchObject({ kind: "requestEnd", outcome: "delivered" });
});

test("a request that is sent again with another payload ends with the facts of the last", () => {
  const { observer, ctx, frames } = observed("summary");
  const other = { messages: [] };
  observer.offer([userMessage], ctx);
  observer.payload(payload);
  observer.payload(other);
  observer.headers(accepted);
  observer.messageStart(assistant("pending"), ctx);
  expect(frames).toMatchObject([
    { kind: "request", ...facts(payload) },
    { kind: "requestEnd", ...facts(other) },
  ]);
});

test("a cache-warming request's payload is not mistaken for the request's own", () => {
  const { observer, ctx, frames } = observed("summary");
  observer.warming(partial({ type: "cache_warming_decision", action: "warm" }));
  observer.offer([userMessage], ctx);
  observer.payload({ ...payload, max_tokens: 1 });
  expect(frames).toEqual([]);
  observer.payload({ ...payload, max_tokens: 100 });
  expect(frames).toMatchObject([facts({ ...payload, max_tokens: 100 })]);
});

test("watching a request without pushes prevents no cache warming, and trusts no headers during it", () => {
  const { observer, ctx, frames } = observed("summary");
  observer.offer([userMessage], ctx);
  observer.payload(payload);
  expect(observer.warming(partial({ type: "cache_warming_decision", action: "warm" }))).toBeUndefined();
  observer.payload({ ...payload, max_tokens: 1 });
  observer.headers(accepted);
  observer.messageStart(assistant("pending"), ctx);
  expect(frames).toMatchObject([facts(payload)]);
  observer.messageEnd(assistant("stop"), ctx);
  expect(frames[1]).toMatchObject({ kind: "requestEnd", outcome: "delivered", evidence: "message" });
  expect(frames[1]).not.toHaveProperty("headers");
  expect(frames[1]).not.toHaveProperty("payloadSha256");
});

test("a payload that cannot be written as JSON removes only the facts", () => {
  const { request, frames } = observed("payload");
  const circular: Record<string, unknown> = {};
  circular["self"] = circular;
  for (const odd of [circular, 1n, Symbol("none"), () => {}]) request(odd);
  const reportedFacts = frames.filter(({ kind }) => kind === "request");
  expect(reportedFacts).toHaveLength(4);
  for (const frame of reportedFacts) {
    expect(frame).not.toHaveProperty("payloadBytes");
    expect(frame).not.toHaveProperty("payload");
  }
  expect(frames.filter(({ kind }) => kind === "requestEnd")).toHaveLength(4);
});

test("a request made before watching began is not reported, and a reported one has its end", () => {
  const { observer, ctx, frames, watch } = observed("off");
  observer.offer([userMessage], ctx);
  watch("payload");
  observer.payload(payload);
  observer.messageStart(assistant("error", "no"), ctx);
  expect(frames).toEqual([]);
  observer.offer([userMessage], ctx);
  observer.payload(payload);
  watch("off");
  observer.messageStart(assistant("error", "no"), ctx);
  expect(frames.map(({ kind }) => kind)).toEqual(["request", "requestEnd"]);
});

test("a reload of the module during a request keeps its end", () => {
  const before = observed("summary");
  before.observer.offer([userMessage], before.ctx);
  before.observer.payload(payload);
  const after = observed("off", { memory: before.memory });
  after.observer.messageStart(assistant("error", "529 no"), after.ctx);
  expect(after.frames).toMatchObject([{ kind: "requestEnd", outcome: "failed", status: 529 }]);
});

test("a replaced session ends its open requests", () => {
  const { observer, ctx, frames } = observed("summary");
  observer.offer([userMessage], ctx);
  observer.payload(payload);
  observer.sessionReplaced(ctx.sessionManager);
  observer.sessionReplaced(ctx.sessionManager);
  expect(frames).toMatchObject([{ kind: "request" }, { kind: "requestEnd", outcome: "aborted" }]);
});
