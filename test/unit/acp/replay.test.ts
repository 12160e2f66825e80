import type { SessionUpdate } from "@agentclientprotocol/sdk";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { LiveUpdates, type TellMissed } from "../../../acp/updates/live-updates.ts";
import { Replay } from "../../../acp/updates/replay.ts";
import { clientState } from "../../helpers/acp-client-state.ts";
import { type ReplayedOptions, replay } from "../../helpers/acp-replay.ts";
import { expectValidUpdates } from "../../helpers/acp-schema.ts";
import { call, PiSession, text, thinking } from "../../helpers/pi-session.ts";
import type { Unchecked } from "../../helpers/unchecked.ts";

const place = { cwd: "/project" };
type Given = PiSession | readonly Unchecked[];

type Options = Partial<ReplayedOptions & { leafId: string | null }>;

function replayOf(given: Given, { leafId: end, ...options }: Options = {}): ReturnType<typeof replay> {
  const entries = given instanceof PiSession ? given.entries.slice(1) : given;
  const leafId = end === undefined ? ((entries.at(-1) as Unchecked)?.id ?? null) : end;
  return replay({ entries, leafId }, { place, compaction: false, ...options });
}

function updatesOf(given: Given, options: Options = {}): Unchecked[] {
  const { updates } = replayOf(given, options);
  expectValidUpdates(updates);
  return updates.filter(({ sessionUpdate }) => sessionUpdate !== "session_info_update");
}

describe("a replay", () => {
  test("tells texts as chunks in their order, and tool calls with their results", () => {
    const session = new PiSession();
    session.system("not for clients");
    session.user("hello");
    session.assistant([thinking("h"), thinking("m"), text("a"), call("c1"), text("b"), call("c2")]);
    session.result("c1", "out");
    session.assistant([], { stopReason: "error", errorMessage: "400: no" });
    const said = (kind: string, words: string): object => ({
      sessionUpdate: `${kind}_chunk`,
      content: { type: "text", text: words },
    });
    const updates = updatesOf(session);
    expect(updates).toMatchObject([
      said("user_message", "hello"),
      said("agent_thought", "hm"),
      said("agent_message", "a"),
      { sessionUpdate: "tool_call", toolCallId: "c1", status: "completed", rawInput: { command: "c1" } },
      said("agent_message", "b"),
      { sessionUpdate: "tool_call", toolCallId: "c2", status: "failed" },
      said("agent_message", "Error: 400: no"),
    ]);
    expect(updates[1].messageId).toBe(updates[4].messageId);
    expect(updates[6].messageId).not.toBe(updates[1].messageId);
  });

  test("tells the active branch alone, with its summaries in their places", () => {
    const session = new PiSession();
    const first = session.user("kept");
    session.user("abandoned");
    session.branch(first);
    session.append("branch_summary", { fromId: "e2", summary: "what was abandoned" });
    session.compaction("what was kept", first);
    session.append("label", { targetId: first, label: "x" });
    session.append("custom_message", { customType: "ci", content: "shown", display: true });
    session.append("custom_message", { customType: "ci", content: "hidden", display: false });
    session.message("bashExecution", { command: "ls\nx", output: "a", exitCode: 1, cancelled: false });
    expect(updatesOf(session)).toMatchObject([
      { content: { text: "kept" } },
      { title: "Summary of another branch", kind: "think", content: [{ content: { text: "what was abandoned" } }] },
      { title: "Compacting the context", status: "completed", content: [{ content: { text: "what was kept" } }] },
      { sessionUpdate: "user_message_chunk", content: { text: "shown" }, _meta: { "pi-rpcd": { customType: "ci" } } },
      { title: "ls", kind: "execute", status: "failed", _meta: { "pi-rpcd": { exitCode: 1 } } },
    ]);
    const own = updatesOf(session, { compaction: true })[2];
    expect(own).toMatchObject({
      sessionUpdate: "compaction_update",
      status: "completed",
      summary: [text("what was kept")],
    });
    expect(updatesOf(session, { leafId: null })).toEqual([]);
    expect(updatesOf(session, { leafId: "no such entry" })).toEqual([]);
  });

  test("ends also if the entries are a cycle, or are not entries", () => {
    const entries = [
      { type: "message", id: "a", parentId: "b", message: { role: "user", content: "x" } },
      { type: "message", id: "b", parentId: "a", message: 7 },
      { id: "c" },
    ];
    expect(updatesOf(entries, { leafId: "b" })).toHaveLength(1);
  });

  test("has the title, the time of the last entry, and the usage", () => {
    const session = new PiSession();
    session.user("\nfirst words\n");
    const usage = { totalTokens: 8, cost: { total: 0.25 } };
    session.assistant([], { usage });
    session.branch(null);
    session.user("again");
    session.assistant([], { usage });
    const info = (): Unchecked => replayOf(session).updates[0];
    expect(info()).toEqual({
      sessionUpdate: "session_info_update",
      title: "again",
      updatedAt: (session.entries.at(-1) as Unchecked).timestamp,
    });
    session.append("session_info", { name: "the name" });
    expect(info().title).toBe("the name");
    expect(updatesOf(session, { contextSize: 100 }).at(-1)).toEqual({
      sessionUpdate: "usage_update",
      used: 8,
      size: 100,
      cost: { amount: 0.25, currency: "USD" },
    });
    // The session's whole cost is known from elsewhere.
    const whole = new Replay({ place, isRunning: false, compaction: false, contextSize: 100 });
    const answers = session.entries.slice(1).flatMap((entry) => [...whole.entry(entry)]);
    expect(answers.length).toBeGreaterThan(0);
    expect([...whole.end(0.75)]).toMatchObject([{ used: 8, cost: { amount: 0.75 } }]);
    session.compaction("s", undefined);
    expect(updatesOf(session, { contextSize: 100 }).at(-1).sessionUpdate).not.toBe("usage_update");
  });

  test("tells an answer as far as its results are known, and what comes after it when they are", () => {
    const session = new PiSession();
    const kinds = (updates: Iterable<SessionUpdate>): string[] =>
      Array.from(updates, (update: Unchecked) => update.toolCallId ?? update.content?.text ?? update.content?.type);
    const told = new Replay({ place, isRunning: false, compaction: false });
    const steps = (add: () => void): string[] => {
      const from = session.entries.length;
      add();
      return session.entries.slice(from).flatMap((entry) => kinds(told.entry(entry)));
    };
    const note = { customType: "ci", content: "noted", display: true };
    expect(steps(() => session.assistant([text("a"), call("c1"), text("b"), call("c2"), text("c")]))).toEqual(["a"]);
    expect(steps(() => session.append("custom_message", note))).toEqual([]);
    expect(steps(() => session.result("c2", "two"))).toEqual([]);
    expect(steps(() => session.result("c1", "one"))).toEqual(["c1", "b", "c2", "c", "noted"]);
    // Without results.
    expect(steps(() => session.assistant([call("c1")]))).toEqual([]);
    expect(steps(() => session.assistant([text("d"), call("c2")]))).toEqual(["c1#2", "d"]);
    expect(steps(() => session.result("c2", "two"))).toEqual(["c2#2"]);
    expect(steps(() => session.assistant([call("c3")]))).toEqual([]);
    expect(steps(() => session.user("e"))).toEqual(["c3", "e"]);
    session.assistant([call("c4")]);
    expect(steps(() => session.assistant([call("c5")]))).toEqual([]);
    expect(kinds(told.end())).toEqual(["c5"]);
  });
});

/** A random session: pi's events, and the entries with the number of events before each. */
interface Session {
  readonly events: { readonly event: Unchecked; readonly at: number }[];
  readonly entries: { readonly entry: Unchecked; readonly after: number }[];
  /** Before which event each turn begins. */
  readonly starts: number[];
}

type Turn =
  | { readonly kind: "user" | "custom" | "compaction"; readonly words: string }
  | { readonly kind: "end" }
  | { readonly kind: "answer"; readonly blocks: readonly Block[] };

interface Block {
  readonly kind: string;
  readonly words: string;
  /** Whether a tool call gets a result. */
  readonly ends: boolean;
}

function sessionOf(turns: readonly Turn[]): Session {
  const session: Session = { events: [], entries: [], starts: [] };
  let time = 0;
  const tell = (event: Unchecked): void => void session.events.push({ event, at: ++time });
  const append = (type: string, fields: object): void => {
    const id = `e${session.entries.length}`;
    const parentId = session.entries.length === 0 ? null : `e${session.entries.length - 1}`;
    const entry = { type, id, parentId, timestamp: new Date(++time).toISOString(), ...fields };
    session.entries.push({ entry, after: session.events.length });
  };
  const ended = (message: Unchecked): void => {
    tell({ type: "message_end", message });
    append("message", { message });
  };
  for (const turn of turns) {
    const timestamp = ++time;
    session.starts.push(session.events.length);
    if (turn.kind === "user") ended({ role: "user", content: turn.words, timestamp });
    else if (turn.kind === "custom") {
      const message = { customType: "ci", content: turn.words, display: true };
      tell({ type: "message_end", message: { role: "custom", ...message, timestamp } });
      append("custom_message", message);
    } else if (turn.kind === "compaction") {
      tell({ type: "compaction_start" });
      append("compaction", { summary: turn.words });
      tell({ type: "compaction_end", result: { summary: turn.words } });
    } else if (turn.kind === "end") tell({ type: "agent_end" });
    else if ("blocks" in turn) {
      tell({ type: "message_start", message: { role: "assistant", content: [], timestamp } });
      const content = turn.blocks.map(({ kind, words }, index) => {
        const update = (type: string, fields: object): void =>
          tell({
            type: "message_update",
            assistantMessageEvent: { type: `${kind}_${type}`, contentIndex: index, ...fields },
          });
        if (kind !== "toolcall") {
          for (const delta of [words, words]) update("delta", { delta });
          update("end", { content: words + words });
          return { type: kind, [kind]: words + words };
        }
        const block = { type: "toolCall", id: `c${index}`, name: "bash", arguments: { command: words } };
        update("start", { id: block.id, toolName: "bash" });
        update("end", { toolCall: block });
        return block;
      });
      ended({ role: "assistant", content, timestamp });
      for (const [index, { kind, words, ends }] of turn.blocks.entries()) {
        if (kind !== "toolcall" || !ends) continue;
        const called = { toolCallId: `c${index}`, toolName: "bash" };
        const result = { content: [text(words)], details: {} };
        tell({ type: "tool_execution_start", ...called, args: { command: words } });
        tell({ type: "tool_execution_end", ...called, result, isError: words.length > 3 });
        ended({ role: "toolResult", ...called, ...result, isError: words.length > 3, timestamp: ++time });
      }
    }
  }
  tell({ type: "agent_end" });
  return session;
}

describe("live updates after a replay", () => {
  const end = fc.constant<Turn>({ kind: "end" });
  const words = fc.string({ minLength: 1, maxLength: 5 });
  const block = fc.record({ kind: fc.constantFrom("text", "thinking", "toolcall"), words, ends: fc.boolean() });
  const turn: fc.Arbitrary<Turn> = fc.oneof(
    end,
    fc.record({
      kind: fc.constantFrom("user" as const, "custom" as const, "compaction" as const),
      words: fc.constantFrom("same", "other"),
    }),
    fc.record({ kind: fc.constant("answer" as const), blocks: fc.array(block, { maxLength: 4 }) }),
  );

  /** `isKnown`: whether it is known that the run goes on. */
  function followed(
    { events, entries }: Session,
    { told, from, isKnown }: { readonly told: number; readonly from: number; readonly isKnown: boolean },
  ): Unchecked {
    const given = entries.slice(0, told).map(({ entry }) => entry);
    const { updates, replay: former } = replayOf(given, { isRunning: isKnown && told < entries.length });
    const send = (update: SessionUpdate): void => void updates.push(update);
    const client = { notices: true, compaction: false, terminals: false };
    const live = new LiveUpdates({ place, client, send, contextSize: () => undefined, told: former.told });
    for (const { event, at } of events.slice(from)) {
      if (event.message?.role === "user") live.user(event.message);
      live.event(event, at);
    }
    live.close();
    expectValidUpdates(updates);
    return clientState(updates);
  }

  test("say what it did not, once, wherever it ends and whichever earlier events come again", () => {
    fc.assert(
      fc.property(fc.array(turn, { maxLength: 8 }), fc.nat(), fc.nat(), fc.boolean(), (turns, cut, start, isKnown) => {
        const session = sessionOf(turns);
        const told = cut % (session.entries.length + 1);
        const whole = clientState(replayOf(session.entries.map(({ entry }) => entry)).updates);
        // The events that come after a replay begin before what is open in its run.
        const known = session.entries[told - 1]?.after ?? 0;
        const starts = [0, ...session.starts.filter((at) => at <= known)];
        const from = starts[start % starts.length] ?? 0;
        expect(followed(session, { told, from, isKnown })).toEqual(whole);
      }),
      { numRuns: 5_000 },
    );
  });

  /**
   * Events are lost from `gap` on, the entries of `seen` events are read, and the events from `from` on come. `isKnown`: as
   * above.
   */
  function withGap(
    { events, entries }: Session,
    { gap, from, seen }: Record<"gap" | "from" | "seen", number>,
    isKnown: boolean,
  ): Unchecked {
    const updates: SessionUpdate[] = [];
    const send = (update: SessionUpdate): void => void updates.push(update);
    const client = { notices: true, compaction: false, terminals: false };
    const live = new LiveUpdates({ place, client, send, contextSize: () => undefined });
    const tell = (some: Session["events"]): void => {
      for (const { event, at } of some) {
        if (event.message?.role === "user") live.user(event.message);
        live.event(event, at);
      }
    };
    tell(events.slice(0, gap));
    live.lose();
    const tellMissed: TellMissed = { user: (message) => live.user(message), by: () => undefined };
    const given = entries.filter(({ after }) => after <= seen).map(({ entry }) => entry);
    const last = given.findLastIndex((entry) => live.isLast(entry));
    expect(last !== -1 || live.hasNoLast).toBe(true);
    given.slice(last + 1).forEach(live.missed(tellMissed));
    if (!isKnown) live.abandon();
    tell(events.slice(from));
    // The daemon says that no run is on, also where pi's own word for it was lost.
    live.abandon();
    live.close();
    expectValidUpdates(updates);
    return clientState(updates);
  }

  test("tell from pi's entries what was lost, once, whichever events come again", () => {
    fc.assert(
      fc.property(
        fc.array(turn, { maxLength: 8 }),
        fc.tuple(fc.nat(), fc.nat(), fc.nat()),
        fc.boolean(),
        (turns, at, isKnown) => {
          const session = sessionOf(turns);
          const { length } = session.events;
          const [gap = 0, from = 0, seen = 0] = at.map((n) => n % (length + 1)).toSorted((x, y) => x - y);
          const whole = clientState(replayOf(session.entries.map(({ entry }) => entry)).updates);
          expect(withGap(session, { gap, from, seen }, isKnown)).toEqual(whole);
        },
      ),
      { numRuns: 5_000 },
    );
  });
});
