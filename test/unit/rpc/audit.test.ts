import { pino } from "pino";
import { expect, test, vi } from "vitest";
import { WireError } from "../../../protocol/errors.ts";
import { isReading } from "../../../protocol/method-row.ts";
import type { MethodName } from "../../../protocol/methods.ts";
import { audit } from "../../../server/rpc/audit.ts";
import type { Call } from "../../../server/rpc/call.ts";
import { rows, under } from "../../helpers/policies.ts";
import { mainGrant } from "../../helpers/tokens.ts";

const secret = "the words of the user";
const by = { clientId: "client-1", name: "Ada's editor" };
const call: Call = { signal: new AbortController().signal, grant: mainGrant, by };

/** Handlers that answer with a session, or fail. */
function start(fail?: unknown) {
  const lines: Record<string, unknown>[] = [];
  const refused: Record<string, unknown>[] = [];
  const logTo = (to: Record<string, unknown>[]) =>
    pino({ level: "trace", base: null }, { write: (line) => to.push(JSON.parse(line)) });
  const answer = async () => {
    if (fail !== undefined) throw fail;
    return { sessionId: "of the result", text: secret, html: secret };
  };
  const policy = audit({
    calls: logTo(lines),
    log: logTo(refused),
    sessionOf: {
      session: (id) => id,
      delivery: () => "its session",
      prompt: () => undefined,
      dialog: () => "q's",
    },
  });
  const ask = async (method: MethodName, params: object) => await under(policy, method, answer)(params, call);
  return { lines, refused, ask };
}

test("every method that changes something logs one line, every other none, and no line has texts of the call", async () => {
  const { lines, ask } = start();
  const params = { text: secret, content: secret, name: secret, token: secret, cwd: secret, value: secret };
  for (const [name] of rows) await ask(name, { ...params, command: { type: "compact", customInstructions: secret } });
  const changing = rows.filter(([, row]) => !isReading(row)).map(([name]) => name);
  expect(lines.map(({ method }) => method)).toEqual(changing);
  expect(changing).toEqual(
    expect.arrayContaining(["session/prompt", "delivery/push", "session/create", "token/rotate"]),
  );
  expect(JSON.stringify(lines)).not.toContain(secret);
  expect(lines.every(({ level }) => level === 30)).toBe(true);
});

test("a line has the client, its token, the method, the session, and the outcome", async () => {
  const { lines, ask } = start();
  await ask("session/create", { cwd: "/" });
  await ask("delivery/cancel", { deliveryId: "d" });
  await ask("session/command", { sessionId: "s", command: { type: "get_state" } });
  await ask("session/command", { sessionId: "s", command: { type: "compact" } });
  const who = { clientId: "client-1", client: "Ada's editor", tokenName: "main", outcome: "done", msg: "call" };
  expect(lines).toMatchObject([
    { ...who, method: "session/create", sessionId: "of the result" },
    { ...who, method: "delivery/cancel", deliveryId: "d" },
    { ...who, method: "session/command", command: "compact" },
  ]);
});

test.each([
  [new WireError("session_busy", secret), "session_busy"],
  [new Error(secret), "internal_error"],
])("%o is the outcome %s, without its words, and still the caller's", async (error, outcome) => {
  const { lines, refused, ask } = start(error);
  await expect(ask("delivery/cancel", { deliveryId: "d" })).rejects.toBe(error);
  expect(refused).toMatchObject([{ method: "delivery/cancel", deliveryId: "d", sessionId: "its session", outcome }]);
  expect(JSON.stringify(refused)).not.toContain(secret);
  expect(lines).toEqual([]);
});

test("a thousand refused calls are a line with the number of the others, and displace no successful ones", async () => {
  vi.useFakeTimers();
  const { lines, refused, ask } = start(new WireError("forbidden", secret));
  for (let i = 0; i < 1_000; i += 1) await ask("session/abort", { sessionId: "s" }).catch(() => {});
  expect(refused).toMatchObject([{ method: "session/abort", outcome: "forbidden" }]);
  vi.advanceTimersByTime(1_000);
  expect(refused).toHaveLength(2);
  expect(refused[1]).toMatchObject({ tokenName: "main", outcome: "forbidden", count: 999, msg: "further calls" });
  vi.advanceTimersByTime(1_000);
  await ask("session/abort", { sessionId: "s" }).catch(() => {});
  expect(refused.slice(2)).toMatchObject([{ method: "session/abort", outcome: "forbidden" }]);
  expect(lines).toEqual([]);
  vi.useRealTimers();
});

test("a reading call has a line if its params need more than reading", async () => {
  const { lines, ask } = start();
  await ask("session/subscribe", { sessionId: "s", provider: "summary", awake: false });
  await ask("session/subscribe", { sessionId: "s", provider: "payload" });
  await ask("session/subscribe", { sessionId: "s", awake: true });
  expect(lines).toMatchObject([
    { method: "session/subscribe", outcome: "done" },
    { method: "session/subscribe", outcome: "done" },
  ]);
});

test("thousands of pushes displace no other call: twenty in a second have a line, and the rest is counted", async () => {
  vi.useFakeTimers();
  const { lines, ask } = start();
  for (let i = 0; i < 1_000; i += 1) await ask("delivery/push", { sessionId: "s" });
  await ask("token/revoke", { name: "other" });
  expect(lines.map(({ method }) => method)).toEqual([...Array(20).fill("delivery/push"), "token/revoke"]);
  vi.advanceTimersByTime(1_000);
  expect(lines).toHaveLength(22);
  const counted = { method: "delivery/push", tokenName: "main", outcome: "done", count: 980, msg: "further calls" };
  expect(lines[21]).toMatchObject(counted);
  vi.advanceTimersByTime(1_000);
  await ask("delivery/push", { sessionId: "s" });
  expect(lines.slice(22)).toMatchObject([{ method: "delivery/push", msg: "call" }]);
  vi.useRealTimers();
});
