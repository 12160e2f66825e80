import { describe, expect, it } from "vitest";
import { exportContext } from "../../../context/document/export.ts";
import { call, PiSession, text } from "../../helpers/pi-session.ts";

const views = ["projected", "full"] as const;

describe("a session that differs from what pi writes", () => {
  it("is exported without invalid entries", () => {
    const session = new PiSession();
    session.user("one");
    const odd = [
      null,
      1,
      "x",
      [],
      undefined,
      {},
      { type: "message" },
      { type: 1, id: "a" },
      { type: "message", id: "" },
    ];
    const { document, diagnostics } = exportContext([...odd, ...session.entries, ...odd]);
    expect(document.items).toHaveLength(1);
    expect(diagnostics.notes).toEqual({ unreadable_entry: 2 * odd.length });
  });

  it("is exported as pi reads it if an id is duplicated or a parent is missing", () => {
    const session = new PiSession();
    session.user("lost");
    session.branch("nowhere");
    session.user("two");
    session.entries.push({ ...session.entries[2], message: { role: "user", content: "second two" } });
    session.branch("e2");
    session.user("three");

    const { document, diagnostics } = exportContext(session.entries);
    expect(document.items?.map(({ content }) => content)).toEqual([[text("second two")], [text("three")]]);
    expect(diagnostics.notes).toEqual({ duplicate_entry: 1, missing_parent: 1, other_branch: 1 });
  });

  it("is cut where its links form a circle, with each entry of the circle once", () => {
    const session = new PiSession();
    session.branch("e3");
    for (const word of ["one", "two", "three", "four"]) session.user(word);
    session.branch("e5");
    session.user("alone");
    for (const view of views) {
      const { document, diagnostics } = exportContext(session.entries, { view, leafId: "e4" });
      expect(diagnostics.notes).toMatchObject({ cycle: 2 });
      if (view === "projected") expect(document.items?.map(({ nodeId }) => nodeId)).toEqual(["e1", "e2", "e3", "e4"]);
      else expect(document.nodes?.filter(({ parentId }) => parentId === null)).toHaveLength(2);
    }
  });

  it("keeps the readable part of messages with wrong types", () => {
    const odd: readonly unknown[] = [
      null,
      undefined,
      1,
      true,
      "",
      "text",
      {},
      [null, 1, "x", {}, [], text("read")],
      { a: 1 },
    ];
    const session = new PiSession();
    session.user("one");
    for (const value of odd) {
      const fields = { content: value, timestamp: value, usage: value, stopReason: value, toolCallId: value };
      const more = { toolName: value, isError: value, details: value, api: value, model: value, provider: value };
      for (const role of [
        "user",
        "assistant",
        "toolResult",
        "system",
        "bashExecution",
        "custom",
        "branchSummary",
        value,
      ]) {
        session.append("message", {
          message: { role, ...fields, ...more, command: value, output: value, summary: value },
        });
      }
      session.append("message", { message: value });
      session.append("compaction", { summary: value, firstKeptEntryId: value, tokensBefore: value, details: value });
      session.append("custom_message", { customType: value, content: value, display: value, details: value });
      session.append("branch_summary", { fromId: value, summary: value });
      session.append("context_edit", { targetId: value ?? "e1", replacement: value });
      session.append("custom", { customType: "pi-rpcd.context", data: value });
      session.append("label", { targetId: value, timestamp: value });
    }
    for (const view of views) {
      for (const includeSystem of [true, false]) {
        const { document } = exportContext(session.entries, { view, includeSystem, includeReasoning: true });
        const times = [...(document.items ?? []), ...(document.nodes ?? [])].map(({ timestamp }) => timestamp);
        expect(times.length).toBeGreaterThan(0);
        expect(times.every((time) => Number.isFinite(time))).toBe(true);
      }
    }
  });

  it("has no key that would set a prototype, and nothing too deep to be written", () => {
    const poisoned = JSON.parse('{"__proto__":{"isAdmin":true},"kept":{"__proto__":[],"n":1}}');
    let deep: unknown = "bottom";
    for (let level = 0; level < 100_000; level++) deep = [deep];
    const session = new PiSession();
    session.user("one");
    session.assistant([call("c1", poisoned), call("c2", { deep }), { ...call("c3"), thoughtSignature: deep }]);
    session.result("c1", "1", { details: poisoned });
    session.result("c2", "2", { details: deep });
    session.result("c3", "3", { extra: deep, other: poisoned });
    session.append("custom_message", { customType: "x", content: "x", display: true, details: deep });
    session.append("custom", { customType: "x", data: deep, more: poisoned });
    session.edit("e1", [{ type: "text", text: "x", deep }]);

    for (const view of views) {
      const { document, diagnostics } = exportContext(session.entries, { view, leafId: "e7" });
      const json = JSON.stringify(document);
      expect(json).not.toContain("__proto__");
      expect(json).toContain('"kept":{"n":1}');
      expect(JSON.stringify(document).match(/"id":"c[123]"/g)?.length).toBeGreaterThanOrEqual(3);
      expect(diagnostics.notes["unsound_data"]).toBeGreaterThan(3);
    }
  });

  it("accepts only root entries of ours, and only their valid fields", () => {
    const root = (data: unknown): unknown[] => {
      const session = new PiSession();
      session.append("custom", { customType: "pi-rpcd.context", data });
      session.user("one");
      return session.entries;
    };
    const hash = "0".repeat(64);
    const entries = JSON.parse(
      '{"e2":{"fields":{"nodeId":"n1","role":"system","timestamp":"x","meta":{"a":1}}},"__proto__":{}}',
    );
    const { items } = exportContext(root({ version: 1, hash, entries })).document;
    expect(items).toEqual([{ role: "user", content: [text("one")], timestamp: 2_000, nodeId: "n1", meta: { a: 1 } }]);
    for (const data of [null, [], "x", { version: 2, hash, entries }, { version: 1, hash: "x", entries }]) {
      expect(exportContext(root(data)).document.items?.[0]?.nodeId).toBe("e2");
    }
  });

  it("takes time proportional to its size, however it is linked", () => {
    const count = 30_000;
    const kinds = ["carrier", "circle", "compaction", "chain"] as const;
    for (const kind of kinds) {
      const session = new PiSession();
      if (kind === "circle") session.branch(`e${count}`);
      for (let n = 1; n <= count; n++) {
        if (kind === "carrier" && n < count)
          session.append("custom_message", { customType: "pi-rpcd.carrier", content: "x" });
        else if (kind === "compaction" && n % 2 === 0) session.compaction(`s${n}`, "e1");
        else session.user(`u${n}`);
        if (kind === "carrier" && n % 3 === 0) session.branch("e1");
      }
      for (const view of views) {
        const { diagnostics } = exportContext(session.entries, { view });
        expect(diagnostics.entries).toBe(count);
      }
    }
  });
});
