import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { SessionUpdate } from "@agentclientprotocol/sdk";
import { expect, test } from "vitest";
import { LiveUpdates, type LiveUpdatesOptions } from "../../../acp/updates/live-updates.ts";
import type { Replay } from "../../../acp/updates/replay.ts";
import type { Client, SessionHandle } from "../../../client/index.ts";
import { Gate } from "../../../provider/gate.ts";
import { answer, call, hold, status, thinking } from "../../../provider/reply.ts";
import type { Step } from "../../../provider/script.ts";
import { clientState } from "../../helpers/acp-client-state.ts";
import { type Entries, replay } from "../../helpers/acp-replay.ts";
import { expectValidUpdates } from "../../helpers/acp-schema.ts";
import { startStage } from "../../helpers/stage.ts";
import type { Unchecked } from "../../helpers/unchecked.ts";

interface Recorded {
  readonly event: Unchecked;
  readonly at: number;
}

const client = { notices: true, compaction: false, terminals: false };

function replayed(entries: Entries, cwd: string, isRunning = false): { updates: SessionUpdate[]; replay: Replay } {
  return replay(entries, { place: { cwd }, compaction: client.compaction, isRunning, contextSize: 1000 });
}

function live(records: readonly Recorded[], options: Pick<LiveUpdatesOptions, "place" | "told">): SessionUpdate[] {
  const updates: SessionUpdate[] = [];
  const send = (update: SessionUpdate): void => void updates.push(update);
  const translated = new LiveUpdates({ client, send, contextSize: () => 1000, ...options });
  for (const { event, at } of records) {
    if (event.type === "message_end" && event.message.role === "user") translated.user(event.message);
    translated.event(event, at);
  }
  translated.close();
  return updates;
}

/** Plays prompts, and records the session's events and its entries. */
async function record(
  steps: readonly Step[],
  play: (session: SessionHandle, stage: { snapshot: () => Promise<void>; client: Client }) => Promise<unknown>,
): Promise<{ records: Recorded[]; entries: Entries; snapshots: Entries[]; cwd: string }> {
  await using stage = await startStage({
    provider: { script: steps },
    agent: {
      settings: { retry: { enabled: true, maxRetries: 2, baseDelayMs: 1 }, compaction: { keepRecentTokens: 1 } },
    },
  });
  const session = await stage.session();
  const stream = session.events();
  await stream.ready;
  const records: Recorded[] = [];
  const reading = (async () => {
    for await (const { event, at } of stream) records.push({ event, at });
  })();
  const snapshots: Entries[] = [];
  const entriesNow = async (): Promise<Entries> =>
    await stage.client.call("session/getEntries", { sessionId: session.id });
  await play(session, { client: stage.client, snapshot: async () => void snapshots.push(await entriesNow()) });
  await session.waitForIdle();
  const entries = await entriesNow();
  await session.close();
  await reading;
  return { records, entries, snapshots, cwd: stage.cwd };
}

function expectSame({ records, entries, cwd }: Awaited<ReturnType<typeof record>>): void {
  const told = replayed(entries, cwd);
  const updates = live(records, { place: { cwd } });
  expectValidUpdates(told.updates);
  expectValidUpdates(updates);
  expect(clientState(updates)).toEqual(clientState(told.updates));
  const rest = live(records, { place: { cwd }, told: told.replay.told });
  expect(
    rest.filter(({ sessionUpdate }) => sessionUpdate !== "notice" && sessionUpdate !== "session_info_update"),
  ).toEqual([]);
}

const edits = [
  { oldText: "one", newText: "1" },
  { oldText: "two", newText: "2" },
];

test("tools, thinking, results and failures of tools", async () => {
  const recorded = await record(
    [
      answer(
        thinking("Let me "),
        thinking("see. "),
        "I will run it.",
        call("bash", { command: "echo '````'; exit 3" }),
        call("write", { path: "a.txt", content: "one\ntwo\n" }),
      ),
      answer(call("edit", { path: "a.txt", edits }), call("edit", { path: "missing.txt", edits })),
      answer("Both. ", call("read", { path: "a.txt", offset: 2 }), call("nonsense", { words: "x" }), call("ls", {})),
      answer(call("bash", { command: "seq 1 5000" }), call("read", "not an object")),
      "done",
    ],
    async (session, { client: daemon }) => {
      await session.runUntilSettled("go on");
      await daemon.call("session/rename", { sessionId: session.id, name: "tools" });
    },
  );
  expectSame(recorded);
  const state = clientState(live(recorded.records, { place: { cwd: recorded.cwd } }));
  expect(state.title).toBe("tools");
  expect(state.tools.slice(0, 4)).toMatchObject([
    { title: "echo '````'; exit 3", kind: "execute", status: "failed", exitCode: 3 },
    { title: "Write a.txt", status: "completed" },
    { title: "Edit a.txt", status: "completed", locations: [{ path: `${recorded.cwd}/a.txt`, line: 1 }] },
    { title: "Edit missing.txt", status: "failed" },
  ]);
});

test("failed answers, retries, answers that are cut off", async () => {
  expectSame(
    await record(
      [
        status(400, { message: "the words of the provider" }),
        status(529),
        answer("after a retry"),
        { ...answer("cut ", call("bash", { command: "echo a" })), stop: "length" },
        "end",
      ],
      async (session) => {
        await session
          .prompt("one")
          .settled()
          .catch(() => {});
        await session.waitForIdle();
        await session.runUntilSettled("two");
        await session.runUntilSettled("three");
      },
    ),
  );
});

test("aborts in an answer, in a tool call, in a tool", async () => {
  const text = new Gate();
  expectSame(
    await record(
      [
        answer(thinking("hm"), "one ", hold(text), "two"),
        answer(call("bash", { command: "echo started; exec sleep 600" }), call("bash", { command: "echo never" })),
        "end",
      ],
      async (session) => {
        await session.prompt("one");
        await text.reached;
        await session.abort();
        const events = session.events();
        await events.ready;
        await session.prompt("two");
        for await (const { event } of events)
          if (JSON.stringify(event["partialResult"] ?? "").includes("started")) break;
        await session.abort();
        await session.runUntilSettled("three");
      },
    ),
  );
});

test("a push, a steered message and a compaction", async () => {
  const gate = new Gate();
  expectSame(
    await record([answer("a ", hold(gate), "b"), "steered", "pushed", "summary of it", "last"], async (session) => {
      await session.prompt("one");
      await gate.reached;
      await session.steer("now");
      gate.open();
      await session.waitForIdle();
      await session
        .push({ customType: "ci", content: "the build is green" })
        .wait("answered")
        .catch(() => {});
      await session.waitForIdle();
      await session.compact();
      await session.runUntilSettled("two");
    }),
  );
});

test("a replay in the middle of a run, and what comes after it", async () => {
  const gate = new Gate();
  const { records, entries, snapshots, cwd } = await record(
    [
      answer("first ", call("bash", { command: "touch begun; until test -e go; do sleep 0.01; done; echo out" })),
      answer("second ", hold(gate), "end"),
    ],
    async (session, { snapshot }) => {
      const events = session.events();
      await events.ready;
      await session.prompt("one");
      for await (const { event } of events) if (event.type === "tool_execution_start") break;
      await snapshot();
      writeFileSync(join((await session.get()).cwd, "go"), "");
      await gate.reached;
      await snapshot();
      gate.open();
    },
  );
  const whole = clientState(replayed(entries, cwd).updates);
  for (const snapshot of snapshots) {
    const { updates, replay } = replayed(snapshot, cwd, true);
    expect(clientState([...updates, ...live(records, { place: { cwd }, told: replay.told })])).toEqual(whole);
  }
});
