import { describe, expect, test } from "vitest";
import { type ContextRoot, readContextRoot } from "../../../context/document/context-root.ts";
import type { ContextItem, ContextTarget } from "../../../context/document/document.ts";
import { contextHash, finishContext } from "../../../context/document/finish.ts";
import { type SessionEntry, sessionEntries } from "../../../context/document/session-entries.ts";
import { dice, someItems, text } from "./items.ts";

const target: ContextTarget = { api: "a", provider: "p", id: "m", takesImages: true };
const header = { id: "s1", timestamp: 1_795_187_000_000, cwd: "/work" };

function prepare(items: readonly ContextItem[]): ReturnType<typeof finishContext> {
  const source = { kind: "tree", id: "run-17" };
  const repairs = { listed: [], counts: {} };
  return finishContext({ items, nodes: items.length, repairs, source, nodeId: "n5" }, {}, target);
}

function write(items: readonly ContextItem[]): readonly SessionEntry[] {
  return [...sessionEntries(prepare(items), header)];
}

function rootOf(entries: readonly SessionEntry[]): ContextRoot {
  const root = readContextRoot(entries[1]?.["data"]);
  if (root === undefined) throw new Error("There is no root.");
  return root;
}

describe("a session file", () => {
  test("begins with a header and a root entry, and each message follows the one before", () => {
    const items = someItems(dice(3), 8);
    const entries = write(items);
    expect(entries[0]).toEqual({
      type: "session",
      version: 3,
      id: "s1",
      timestamp: "2026-11-20T15:03:20.000Z",
      cwd: "/work",
    });
    expect(entries[1]).toMatchObject({ type: "custom", customType: "pi-rpcd.context", parentId: null });
    const ids = entries.slice(1).map(({ id }) => id);
    expect(entries.slice(2).map(({ parentId }) => parentId)).toEqual(ids.slice(0, -1));
    expect(ids.every((id) => /^[0-9a-f]{8}$/.test(String(id)))).toBe(true);
    expect(entries).toHaveLength(2 + items.filter(({ role }) => role !== "system").length);
    expect(rootOf(entries)).toMatchObject({
      hash: prepare(items).hash,
      source: { kind: "tree", id: "run-17" },
      nodeId: "n5",
    });
  });

  test("of the same context is identical, and no id in it occurs twice, whatever its length", () => {
    const items = someItems(dice(4), 500);
    expect(write(items)).toEqual(write(items));
    const ids = write(items).map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
  });

  test("keeps in its root the fields that pi lacks, including usage", () => {
    const usage = { input: 5, cost: { total: 9 } };
    const entries = write([
      { role: "system", content: text("Rule."), timestamp: 1, nodeId: "n1", meta: { a: 1 } },
      { role: "user", content: text("Hi."), timestamp: 2, nodeId: "n2", meta: { b: 2 } },
      {
        role: "assistant",
        content: text("Ho."),
        timestamp: 3,
        model: target,
        usage,
        stopReason: "length",
        nodeId: "n3",
      },
      { role: "event", eventType: "e", content: [], timestamp: 4.5, meta: { c: 3 } },
      { role: "system", content: text("Late rule."), timestamp: 5 },
    ]);
    const ids = entries.map(({ id }) => String(id));
    const root = rootOf(entries);
    expect(root.instructions).toBe("Rule.\n\nLate rule.");
    expect(root.system).toEqual([
      { before: ids[2], item: { role: "system", content: text("Rule."), timestamp: 1, nodeId: "n1", meta: { a: 1 } } },
      { before: null, item: { role: "system", content: text("Late rule."), timestamp: 5 } },
    ]);
    expect(root.entries).toEqual({
      [ids[2] ?? ""]: { fields: { nodeId: "n2", meta: { b: 2 } } },
      [ids[3] ?? ""]: { fields: { nodeId: "n3", usage, stopReason: "length" }, absent: ["blocks"] },
      [ids[4] ?? ""]: { fields: { timestamp: 4.5 }, absent: ["nodeId"] },
    });
    expect(entries[3]).toMatchObject({ message: { usage: { input: 0, cost: { total: 0 } }, stopReason: "stop" } });
  });

  test("has pi's own entries again, and a compaction in it is not later than the file", () => {
    const native = { type: "compaction", tokensBefore: 9, details: { readFiles: [] }, fromHook: true };
    const summary: ContextItem = {
      role: "event",
      eventType: "pi.compaction",
      content: text("Ducks."),
      meta: { native, other: 1 },
      timestamp: header.timestamp + 5_000,
    };
    const branch = { type: "branch_summary", fromId: "0a", details: { modifiedFiles: ["b"] } };
    const entries = write([
      summary,
      { ...summary, eventType: "pi.branchSummary", meta: { native: branch } },
      { ...summary, timestamp: 3 },
    ]);
    const id = entries[2]?.["id"];
    const { type: _, ...kept } = native;
    expect(entries[2]).toMatchObject({ type: "compaction", summary: "Ducks.", firstKeptEntryId: id, ...kept });
    expect(entries[2]?.["timestamp"]).toBe("2026-11-20T15:03:20.000Z");
    expect(entries[3]).toMatchObject({ type: "branch_summary", fromId: "0a", details: { modifiedFiles: ["b"] } });
    // It would hide earlier entries.
    expect(entries[4]).toMatchObject({ type: "message", message: { role: "compactionSummary", tokensBefore: 9 } });
    expect(rootOf(entries).entries[String(id)]).toEqual({
      fields: { timestamp: summary.timestamp, meta: { other: 1 } },
      absent: ["nodeId"],
    });
  });

  test("can be written with any times", () => {
    const times = [-8.64e15, 8.64e15, Number.MAX_VALUE, -Number.MAX_VALUE, 0.5];
    const entries = write(times.map((timestamp) => ({ role: "user", content: text("a"), timestamp })));
    expect(entries).toHaveLength(7);
  });
});

describe("a root entry written by others", () => {
  const hash = "0".repeat(64);

  test.each([undefined, null, 5, "x", [], {}, { version: 2, hash }, { version: 1, hash: "0" }])(
    "is invalid: %j",
    (data) => {
      expect(readContextRoot(data)).toBeUndefined();
    },
  );

  test("is read without its invalid parts", () => {
    const data = JSON.parse(`{"version":1,"hash":"${hash}","source":5,"nodeId":{},"instructions":[],
      "system":[5,{"before":1,"item":{}},{"before":null,"item":{"content":[{"type":"text"},{"type":"text","text":"a"}],"role":"user","meta":5}}],
      "entries":{"__proto__":{"fields":{"nodeId":5,"meta":{"a":1},"content":"b","role":"system"},"absent":["usage","content",5]},"x":7}}`);
    expect(readContextRoot(data)).toEqual({
      version: 1,
      hash,
      system: [{ before: null, item: { role: "system", content: text("a"), timestamp: 0 } }],
      entries: Object.fromEntries([["__proto__", { fields: { meta: { a: 1 } }, absent: ["usage"] }]]),
    });
  });
});

describe("a prepared context", () => {
  test("has a hash of only its messages and instructions", () => {
    const items = someItems(dice(9), 4);
    const { hash, messages, instructions } = prepare(items);
    expect(prepare(items.map((item) => ({ ...item, nodeId: "other" }))).hash).toBe(hash);
    expect(prepare(items.slice(1)).hash).not.toBe(hash);
    expect(contextHash(messages, instructions)).toBe(hash);
    expect(contextHash(messages, "else")).not.toBe(hash);
  });

  test("reports its counts, and warns if the budget was exceeded", () => {
    const items = someItems(dice(11), 4);
    const repairs = { listed: [], counts: { foreign_reasoning: 2 } };
    const kept = finishContext({ items, nodes: 99, repairs }, { maxTokens: 10, onOverflow: "keep" }, target);
    expect(kept.counts).toEqual({
      nodes: 99,
      items: items.length,
      pairs: items.filter(({ role }) => role === "toolResult").length,
      repairs: { foreign_reasoning: 2 },
    });
    expect(kept.warnings).toEqual(["above_threshold", "reasoning_dropped"]);
    expect(kept.tokens.saved).toBe(kept.tokens.flattened - kept.tokens.structured);
    expect(kept.budget).toBe(10);
  });

  test("has 80 % of the rest of the window as its default budget", () => {
    const finish = (options: Parameters<typeof finishContext>[1], contextWindow?: number): number | null =>
      finishContext(
        { items: someItems(dice(1), 1), nodes: 1, repairs: { listed: [], counts: {} } },
        options,
        contextWindow === undefined ? target : { ...target, contextWindow },
      ).budget;
    expect(finish({}, 200_000)).toBe(Math.floor((200_000 - 16_384) * 0.8));
    expect(finish({})).toBeNull();
    expect(finish({ maxTokens: null }, 200_000)).toBeNull();
    expect(finish({ maxTokens: 70_000 }, 200_000)).toBe(70_000);
    expect(finish({ budget: 60_000 }, 200_000)).toBe(60_000);
  });

  test("is refused if nothing is left", () => {
    expect(() => prepare([])).toThrow(expect.objectContaining({ kind: "context_invalid" }));
  });
});
