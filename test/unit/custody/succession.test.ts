import { EventEmitter } from "node:events";
import { pino } from "pino";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { SessionContext } from "../../../server/core/session-context.ts";
import { Succession } from "../../../server/custody/succession.ts";
import { SerialQueue } from "../../../server/lib/serial-queue.ts";
import type { Child } from "../../../server/pi/child.ts";
import { ChildEnvironment } from "../../../server/pi/child-environment.ts";
import { ChildMcpServers } from "../../../server/pi/child-mcp-servers.ts";

const stored = { sessionId: "forked", file: "/nowhere/1_forked.jsonl" };

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const environment = new ChildEnvironment("client", "f", {});
const mcpServers = new ChildMcpServers([{ name: "m", command: "c" }]);

/** A session that takes over a child which has said hello, and answers on request. */
function takeOver() {
  const answer = Promise.withResolvers<{ data: unknown }>();
  let stops = 0;
  const exited = Promise.withResolvers<void>();
  const child = {
    rebind: () => {},
    send: () => answer.promise,
    stop: async () => {
      stops += 1;
      exited.resolve();
    },
    cleaned: exited.promise,
  } as unknown as Child;
  const session = {
    record: { stored, nextGeneration: () => 2 },
    scope: new SerialQueue({ maxWaiting: 1, onFull: () => new Error("full") }),
    events: new EventEmitter(),
    log: pino({ level: "silent" }),
  } as unknown as SessionContext;
  const succession = new Succession(session, {
    life: { take: () => {}, giveAway: () => {}, refresh: async () => {}, canTake: true, child },
    custody: { gaveAway: () => {}, tookOver: async () => {} },
    pushing: { handOver: async () => {}, resume: async () => {}, wantsChild: false },
    parts: { took: () => {} },
    startTimeoutMs: 120_000,
    maxHeldBytes: 1_000,
  });
  const verified = succession.takeOver(child, { environment, mcpServers });
  return { record: session.record, answer, verified, taken: succession.taken, stops: () => stops };
}

test("a session has the environment and the MCP servers of the child that it took over", () => {
  const { record, verified } = takeOver();
  void verified.catch(() => {});
  expect(record.environment).toBe(environment);
  expect(record.mcpServers).toBe(mcpServers);
});

test("a pi with slow extensions after a fork has the time of a start to report its session", async () => {
  const { answer, verified, taken, stops } = takeOver();
  await vi.advanceTimersByTimeAsync(119_000);
  expect(stops()).toBe(0);
  answer.resolve({ data: { sessionId: stored.sessionId, sessionFile: stored.file } });
  await Promise.all([verified, taken]);
  expect(stops()).toBe(0);
});

test("a pi that reports nothing in that time is ended, and is not accused of a false hello", async () => {
  const { verified, taken, stops } = takeOver();
  const failed = expect(taken).rejects.toMatchObject({ kind: "link_failed", data: { reason: "no_answer" } });
  await vi.advanceTimersByTimeAsync(120_000);
  await Promise.all([verified, failed]);
  expect(stops()).toBeGreaterThan(0);
});

test("a pi that has another session is ended for a false hello", async () => {
  const { answer, verified, taken, stops } = takeOver();
  const failed = expect(taken).rejects.toMatchObject({ kind: "link_failed", data: { reason: "false_hello" } });
  answer.resolve({ data: { sessionId: "another", sessionFile: stored.file } });
  await Promise.all([verified, failed]);
  expect(stops()).toBeGreaterThan(0);
});
