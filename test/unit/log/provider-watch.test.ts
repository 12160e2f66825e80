import { mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { expect, onTestFinished, test } from "vitest";
import type { OutwardFrame } from "../../../protocol/link-outward.ts";
import type { ProviderLevel } from "../../../protocol/provider-level.ts";
import { Journal } from "../../../server/log/journal.ts";
import { ProviderWatch } from "../../../server/log/provider-watch.ts";
import type { FrameBody } from "../../../server/pi/link.ts";
import { type Recorder, recorder } from "../../helpers/core.ts";
import { memoryLog } from "../../helpers/logs.ts";

const at = 1_000;
const request = (requestId: string, more: object = {}): OutwardFrame => ({
  ...{ kind: "request", at, requestId, deliveryIds: [], messageCount: 1, ...more },
});
const requestEnd = (requestId: string, outcome: "delivered" | "failed" | "aborted" = "delivered"): OutwardFrame => ({
  ...{ kind: "requestEnd", at, requestId, outcome, latencyMs: 1 },
  ...(outcome === "delivered" ? { evidence: "headers" } : { error: "no" }),
});

function watched() {
  const directory = mkdtempSync(join(tmpdir(), "watch-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const journal = new Journal({ sessionId: "s-1", epoch: "e-1", log: memoryLog() });
  const provider = new ProviderWatch({ journal, maxBodyBytes: 100, log: pino({ level: "silent" }) });
  const sent: FrameBody[] = [];
  const replies: PromiseWithResolvers<unknown>[] = [];
  const prefix = join(directory, "body-");
  const child = {
    state: { kind: "ready" },
    link: {
      bodyPrefix: prefix,
      send: (frame: FrameBody) => {
        sent.push(frame);
        const reply = Promise.withResolvers<unknown>();
        replies.push(reply);
        return reply.promise;
      },
    },
  } as unknown as Parameters<ProviderWatch["attach"]>[0];
  const subscribe = (id: string, level?: ProviderLevel): Recorder => {
    const subscriber = recorder(id);
    journal.subscribe(subscriber, { provider: level });
    return subscriber;
  };
  /** Answers the oldest pending frame to the helper. */
  const reply = async (): Promise<void> => {
    replies.shift()?.resolve({});
    await new Promise(setImmediate);
  };
  const levels = (): unknown[] => sent.map((frame) => (frame.kind === "watch" ? frame.provider : frame.kind));
  return { journal, provider, child, subscribe, reply, levels, prefix, directory };
}

const summary = ({ heard }: Recorder): string[] =>
  heard.map(({ method, params }) => `${method.slice("provider/request".length)} ${params.requestId}`);

test("the helper is immediately asked for the highest requested level, and for only a few changes in advance", async () => {
  const { provider, child, journal, subscribe, reply, levels } = watched();
  provider.attach(child);
  expect(levels()).toEqual([]);
  subscribe("a", "summary");
  // The prompt follows this call, and the subscriber must get its request: the call cannot wait for the answer.
  subscribe("b", "payload");
  subscribe("c", "messages");
  expect(levels()).toEqual(["summary", "payload"]);
  for (const id of ["b", "c", "a"]) journal.unsubscribe(id);
  expect(levels()).toEqual(["summary", "payload", "messages", "summary", "off"]);
  for (let n = 0; n < 50; n += 1) {
    subscribe("d", "summary");
    journal.unsubscribe("d");
  }
  expect(levels()).toHaveLength(8);
  subscribe("e", "messages");
  // The result of all messages after the helper has taken the first of them.
  while (levels().at(-1) !== "messages") await reply();
  for (let n = 0; n < 9; n += 1) await reply();
  expect(levels().at(-1)).toBe("messages");
});

test("a child that starts during a subscription, and a reloaded helper, are asked", async () => {
  const { provider, child, subscribe, reply, levels } = watched();
  subscribe("a", "summary");
  provider.attach(child);
  await reply();
  provider.receive({
    ...{ kind: "hello", at, link: 1, command: "command-1", reason: "reload", sessionId: "s" },
  });
  await reply();
  expect(levels()).toEqual(["summary", "summary"]);
});

test("a helper that was reloaded before its answer is asked again", async () => {
  const { provider, child, subscribe, reply, levels } = watched();
  provider.attach(child);
  subscribe("a", "summary");
  provider.receive({ ...{ kind: "hello", at, link: 1, command: "command-1", reason: "new", sessionId: "s" } });
  await reply();
  expect(levels()).toEqual(["summary", "summary"]);
});

test("whatever a helper reports, each reported request ends once", () => {
  const { provider, child, subscribe } = watched();
  provider.attach(child);
  const subscriber = subscribe("a", "summary");
  provider.receive(requestEnd("r0"));
  provider.receive(request("r1"));
  provider.receive(requestEnd("other"));
  provider.receive(request("r2"));
  provider.receive(requestEnd("r2"));
  provider.receive(requestEnd("r2", "failed"));
  provider.receive(request("r3"));
  provider.receive(requestEnd("r3", "failed"));
  provider.receive(request("r4"));
  provider.childEnded(child, at);
  provider.childEnded(child, at);
  expect(summary(subscriber)).toEqual([
    ...["Prepared r1", "Failed r1", "Prepared r2", "Delivered r2"],
    ...["Prepared r3", "Failed r3", "Prepared r4", "Failed r4"],
  ]);
  expect(subscriber.heard.filter(({ params }) => params.reason === "unknown")).toHaveLength(2);
});

test("a failure waits for pi's statement about a retry, and no longer than the run", () => {
  const { provider, child, subscribe } = watched();
  provider.attach(child);
  const subscriber = subscribe("a", "summary");
  provider.receive(request("r1"));
  provider.receive(requestEnd("r1", "failed"));
  expect(summary(subscriber)).toEqual(["Prepared r1"]);
  provider.look({ type: "agent_end", willRetry: true });
  provider.receive(request("r2"));
  provider.receive(requestEnd("r2", "aborted"));
  provider.look({ type: "agent_settled" });
  provider.look({ type: "agent_end", willRetry: "yes" });
  provider.receive(request("r3"));
  expect(subscriber.heard.map(({ params: { attempt, reason, willRetry } }) => [attempt, reason, willRetry])).toEqual([
    [1, undefined, undefined],
    [undefined, "failed", true],
    [2, undefined, undefined],
    [undefined, "aborted", undefined],
    [1, undefined, undefined],
  ]);
});

test("only subscribers that got a request get its end", () => {
  const { provider, child, subscribe, journal } = watched();
  provider.attach(child);
  const early = subscribe("early", "summary");
  const gone = subscribe("gone", "summary");
  provider.receive(request("r1"));
  const late = subscribe("late", "payload");
  journal.unsubscribe("gone");
  journal.subscribe(early, { provider: "messages" });
  provider.receive(requestEnd("r1"));
  expect(summary(early)).toEqual(["Prepared r1", "Delivered r1"]);
  expect(summary(gone)).toEqual(["Prepared r1"]);
  expect(summary(late)).toEqual([]);
});

const left = { bytes: 10, isLeft: true };

test("invalid bodies are omitted, reported as omitted, and deleted", () => {
  const { provider, child, subscribe, prefix, directory } = watched();
  provider.attach(child);
  const subscriber = subscribe("a", "payload");
  const secret = join(directory, "secret");
  writeFileSync(secret, '{"secret":1}', { mode: 0o600 });
  const wrong: readonly (readonly [id: string, make: (path: string) => void])[] = [
    ["r1", (path) => writeFileSync(path, '{"a":1},"seq":7', { mode: 0o600 })],
    ["r2", (path) => writeFileSync(path, "{oops}", { mode: 0o600 })],
    ["r3", (path) => writeFileSync(path, "[1]", { mode: 0o600 })],
    ["r4", (path) => writeFileSync(path, JSON.stringify({ a: "x".repeat(100) }), { mode: 0o600 })],
    ["r5", (path) => writeFileSync(path, '{"a":1}', { mode: 0o644 })],
    ["r6", (path) => symlinkSync(secret, path)],
    ["r7", (path) => writeFileSync(path, Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]), { mode: 0o600 })],
    ["r8", () => {}],
    ["r9", (path) => writeFileSync(path, `${"[".repeat(600)}${"]".repeat(600)}`, { mode: 0o600 })],
  ];
  for (const [id, make] of wrong) {
    make(`${prefix}${id}.payload`);
    provider.receive(request(id, { payload: left }));
    provider.receive(requestEnd(id));
    const prepared = subscriber.heard.find(({ params }) => params.requestId === id);
    expect(prepared?.params, id).toMatchObject({ truncated: true });
    expect(prepared?.params, id).not.toHaveProperty("payload");
  }
  expect(readdirSync(directory)).toEqual(["secret"]);
});

test("bodies are sent unchanged, in the frames of the subscribers that requested them", () => {
  const { provider, child, subscribe, prefix, directory } = watched();
  provider.attach(child);
  const [summary, messages, payload] = [
    subscribe("s", "summary"),
    subscribe("m", "messages"),
    subscribe("p", "payload"),
  ];
  writeFileSync(`${prefix}r1.messages`, '["ä\u2028"]', { mode: 0o600 });
  writeFileSync(`${prefix}r1.payload`, '{"n":1.0}', { mode: 0o600 });
  provider.receive(request("r1", { messages: left, payload: left }));
  expect(summary.heard[0]?.params).not.toHaveProperty("messages");
  expect(messages.heard[0]?.params).toMatchObject({ messages: ["ä\u2028"], messagesBytes: 10 });
  expect(messages.heard[0]?.params).not.toHaveProperty("payload");
  expect(payload.heard[0]?.params).toMatchObject({ messages: ["ä\u2028"], payload: { n: 1 } });
  expect(readdirSync(directory)).toEqual([]);
});

test("bodies without a subscriber are deleted", async () => {
  const { provider, child, subscribe, prefix, directory } = watched();
  provider.attach(child);
  subscribe("s", "summary");
  for (const id of ["r1", "r2"]) writeFileSync(`${prefix}${id}.payload`, "{}", { mode: 0o600 });
  provider.receive(request("r1", { payload: left }));
  expect(readdirSync(directory)).toEqual(["body-r2.payload"]);
  provider.childEnded(child, at);
  await expect.poll(() => readdirSync(directory)).toEqual([]);
});
