import fc from "fast-check";
import { expect, test } from "vitest";
import { ChildEnvironment } from "../../../server/pi/child-environment.ts";
import { ChildMcpServers } from "../../../server/pi/child-mcp-servers.ts";
import { resultText, wholeText } from "../../../server/rpc/answer-text.ts";
import { listAnswers } from "../../../server/rpc/handlers/session.ts";
import type { Session } from "../../../server/session/session.ts";
import { rowPage } from "../../../server/session/session-page.ts";
import { type RowSources, SessionRow } from "../../../server/session/session-row.ts";
import { startCore } from "../../helpers/core.ts";

const stored: RowSources["stored"] = {
  sessionId: "s",
  cwd: "/",
  file: "/f",
  generation: 0,
  reservedSeq: 0,
  options: {},
  createdAt: 1,
  updatedAt: 1,
};
const sources: RowSources = {
  stored,
  model: undefined,
  thinkingLevel: undefined,
  environment: undefined,
  mcpServers: ChildMcpServers.none,
  isLost: false,
  state: "hibernated",
  pid: undefined,
  restoredAt: undefined,
  runId: undefined,
  exit: undefined,
  idleAfterMs: 0,
  restarts: undefined,
  silentSince: undefined,
  cursor: 0,
  epoch: "e",
  pendingDeliveries: 0,
  control: undefined,
  pendingDialogs: [],
  lostPrompts: [],
  summary: undefined,
};
const other: RowSources = {
  stored: { ...stored, labels: { a: "b" } },
  model: { provider: "p", id: "m" },
  thinkingLevel: "high",
  environment: new ChildEnvironment("client", "f", {}),
  mcpServers: new ChildMcpServers([{ name: "m", command: "c" }]),
  isLost: true,
  state: "running",
  pid: 7,
  restoredAt: 8,
  runId: "r",
  exit: { at: 1, code: 0, signal: null, expected: true, stderrTail: "" },
  idleAfterMs: 1,
  restarts: { failures: 1 },
  silentSince: 9,
  cursor: 10,
  epoch: "f",
  pendingDeliveries: 1,
  control: { policy: "exclusive" },
  pendingDialogs: [{ dialogId: "d", requestId: "q", method: "confirm", title: "t", deadline: 1 }],
  lostPrompts: [{ promptId: "p", text: "t", length: 1, at: 1 }],
  summary: { at: 1, outcome: "settled" },
};

test("a row is used again only while every one of its sources is the same", () => {
  const row = new SessionRow(sources);
  expect(row.isOf({ ...sources })).toBe(true);
  for (const name of Object.keys(sources) as (keyof RowSources)[]) {
    const changed = { ...sources, [name]: other[name] };
    expect(row.isOf(changed), name).toBe(false);
    expect(new SessionRow(changed).text, name).not.toBe(row.text);
  }
});

test("the kept text of a list is the text of its sessions, whatever changed in between, and for every limit of a token", () => {
  const names = Object.keys(sources) as (keyof RowSources)[];
  const change = fc.record({ session: fc.nat(4), name: fc.constantFrom(...names), isOther: fc.boolean() });
  const step = fc.record({ change: fc.option(change), seen: fc.array(fc.nat(4)), next: fc.option(fc.constant("1/s")) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const answer = listAnswers();
      const now: RowSources[] = Array.from({ length: 5 }, (_, i) => ({
        ...sources,
        stored: { ...stored, sessionId: `s${i}` },
      }));
      const rows = now.map((of) => new SessionRow(of));
      for (const { change, seen, next } of steps) {
        if (change !== null && change.name !== "stored") {
          const { session, name, isOther } = change;
          now[session] = { ...(now[session] as RowSources), [name]: (isOther ? other : sources)[name] };
        }
        for (const [i, of] of now.entries()) if (rows[i]?.isOf(of) !== true) rows[i] = new SessionRow(of);
        const end = next === null ? {} : { next };
        const result = answer({ rows: seen.map((i) => rows[i] as SessionRow), ...end });
        const fresh = { sessions: seen.map((i) => new SessionRow(now[i] as RowSources).info), ...end };
        expect(wholeText(resultText(result))).toBe(JSON.stringify(fresh));
        expect(result).toEqual(fresh);
      }
    }),
  );
});

test("each change of a session is in the next list, and the text of a list without changes is kept", async () => {
  await using core = await startCore();
  const answer = listAnswers();
  const list = () => {
    const result = answer(rowPage(core.registry, {}));
    expect(wholeText(resultText(result))).toBe(JSON.stringify(result));
    return result;
  };
  const row = ({ sessionId }: Session) => list().sessions.find((one) => one.sessionId === sessionId);
  expect(list()).toEqual({ sessions: [] });
  const session = await core.registry.create({ cwd: core.cwd });
  expect(row(session)).toMatchObject({ state: "idle", generation: 1 });
  expect(list()).toBe(list());

  await session.prompting.prompt({ text: "x", ifRunning: "refuse" });
  await session.settled();
  const { cursor } = session.journal;
  expect(row(session)).toMatchObject({ cursor });
  const delivery = { customType: "t", content: "c", mode: "nextTurn", triggersRun: false } as const;
  await core.tracker.accept({ sessionId: session.sessionId, ...delivery } as never);
  expect(row(session)?.pendingDeliveries).toBe(core.tracker.pending(session.sessionId));

  const by = { clientId: "c" };
  session.control.acquire({ by, policy: "exclusive", ttlMs: 60_000, takeOver: false });
  expect(row(session)?.control).toMatchObject({ policy: "exclusive", controller: by });
  session.control.release(by, undefined);
  expect(row(session)?.control?.controller).toBeUndefined();

  await session.supervisor.hibernate(true);
  await session.cleaned();
  expect(row(session)).toMatchObject({ state: "hibernated" });
  expect(row(session)?.pid).toBeUndefined();
  await session.awake();
  expect(row(session)).toMatchObject({ state: "idle", generation: 2 });

  const second = await core.registry.create({ cwd: core.cwd, labels: { a: "b" } });
  const both = list();
  const seen = answer(rowPage(core.registry, {}, ({ labels }) => labels?.["a"] === "b"));
  expect(seen.sessions.map(({ sessionId }) => sessionId)).toEqual([second.sessionId]);
  expect(wholeText(resultText(seen))).not.toContain(session.sessionId);
  expect(list()).toEqual(both);
  await core.registry.close(second.sessionId);
  expect(list().sessions.map(({ sessionId }) => sessionId)).toEqual([session.sessionId]);
});
