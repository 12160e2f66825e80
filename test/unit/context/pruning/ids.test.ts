import { expect, test } from "vitest";
import { addIds } from "../../../../context/pruning/ids.ts";
import { bareIds, idsData, messageIdOf, messageNumberOf } from "../../../../context/pruning/ids-record.ts";
import { IdsRegistry, type IdsSession } from "../../../../context/pruning/ids-registry.ts";
import type { SessionEntry } from "../../../../extension/pi-types.ts";
import { defaultPruning } from "../../../../protocol/pruning/config.ts";
import { partial, unchecked } from "../../../helpers/partial.ts";
import { fakeHost } from "../fake-host.ts";
import { Branch } from "./branch.ts";

/** A session's file that grows. */
class Session {
  readonly #id: string;
  readonly #entries: SessionEntry[] = [];

  constructor(id = "s1") {
    this.#id = id;
  }

  get reader(): IdsSession {
    return {
      getSessionId: () => this.#id,
      getEntries: () => [...this.#entries],
      getEntry: (id) => this.#entries.find((entry) => entry.id === id),
      getLeafEntry: () => this.#entries.at(-1),
    };
  }

  add(id: string, fields: object): void {
    this.#entries.push({ id, parentId: this.#entries.at(-1)?.id ?? null, timestamp: "", ...fields } as SessionEntry);
  }

  user(id: string): void {
    this.add(id, { type: "message", message: { role: "user", content: id, timestamp: 1 } });
  }

  answer(id: string, ...texts: readonly string[]): void {
    const content = texts.map((text) => ({ type: "text", text }));
    this.add(id, { type: "message", message: { role: "assistant", content, timestamp: 1 } });
  }

  record(id: string, data: unknown): void {
    this.add(id, { type: "custom", customType: "pi-rpcd.ids", data });
  }
}

test("ids have at least three digits, four from m1000 on; no other form is an id", () => {
  expect([1, 999, 1_000, 123_456].map(messageIdOf)).toEqual(["m001", "m999", "m1000", "m123456"]);
  expect(["m001", "m1000", "m0001", "m000", "M001", "m01", " m001", "m1e3", "b1"].map(messageNumberOf)).toEqual([
    1,
    1_000,
    ...Array.from({ length: 7 }, () => undefined),
  ]);
});

test("ids are assigned in the order of first sight, and never again", () => {
  const session = new Session();
  const registry = new IdsRegistry();
  for (const id of ["a", "b", "c"]) session.user(id);
  expect(["b", "a", "b"].map((id) => registry.give(id, session.reader))).toEqual([1, 2, 1]);
  session.record("r1", idsData(registry.unrecorded(session.reader)));
  expect(registry.unrecorded(session.reader).size).toBe(0);

  // After a restart, and in a file that was forked before the third was seen.
  const later = new IdsRegistry();
  expect(["a", "b", "c"].map((id) => later.give(id, session.reader))).toEqual([2, 1, 3]);
  expect(later.highest(session.reader)).toBe(3);
  expect(later.entryOf(2, session.reader)).toBe("a");
});

test("numbers of entries that a fork did not copy are not used again", () => {
  const fork = new Session("s2");
  fork.user("a");
  fork.record("r1", { v: 1, ids: { a: "m001", elsewhere: "m002" } });
  fork.user("b");
  expect(new IdsRegistry().give("b", fork.reader)).toBe(3);
});

test("a fork keeps ids that no entry records yet, and another session does not know them", () => {
  const given = new Map<string, number>();
  const session = new Session();
  session.user("a");
  session.user("b");
  const registry = new IdsRegistry(given);
  expect(["a", "b"].map((id) => registry.give(id, session.reader))).toEqual([1, 2]);

  const fork = new Session("s2");
  fork.user("b");
  expect(new IdsRegistry(given).numberOf("b", fork.reader)).toBe(2);
  const other = new Session("s3");
  other.user("z");
  expect(new IdsRegistry(given).give("z", other.reader)).toBe(1);
  expect([...given]).toEqual([["z", 1]]);
});

test("an id recorded on another branch is recorded on this one too, so that a fork knows it", () => {
  const session = new Branch();
  const u1 = session.user("a");
  const a1 = session.message({ role: "assistant", content: [] });
  session.add({ type: "custom", customType: "pi-rpcd.ids", data: { v: 1, ids: { [u1]: "m001" } } });
  session.user("b");
  session.message({ role: "assistant", content: [] });
  session.add({ type: "custom", customType: "pi-rpcd.ids", data: { v: 1, ids: { e4: "m002" } } });
  session.go(a1);
  const u3 = session.user("c");
  const a3 = session.message({ role: "assistant", content: [] });
  const ctx = session.context;
  const host = fakeHost(ctx);
  addIds(
    { ...host, off: () => undefined, pruning: () => defaultPruning, entries: partial({ need: () => undefined }) },
    new Map(),
  );
  const contextEntries = [u1, a1, u3, a3].map((id) => {
    const sourceEntry = ctx.sessionManager.getEntry(id);
    return { sourceEntry, messages: sourceEntry?.type === "message" ? [sourceEntry.message] : [] };
  });
  const proposed = () =>
    host.boundary.write({
      hook: "turn_end",
      state: unchecked({ entries: [], continue: false, context: { contextEntries } }),
      ctx,
    }) as { entries: readonly object[] } | undefined;
  const draft = { type: "custom", customType: "pi-rpcd.ids", data: { v: 1, ids: { [u1]: "m001", [u3]: "m003" } } };
  expect(proposed()?.entries).toEqual([draft]);
  session.add(draft);
  expect(proposed()).toBeUndefined();
  expect(host.faults).toEqual([]);
});

test("an entry shown before pi was killed has the same id, on whichever branch the next request is made", () => {
  const session = new Session();
  session.user("a");
  session.answer("x");
  session.record("r1", { v: 1, ids: { a: "m001" } });
  session.user("b");
  session.answer("y");
  session.user("c");
  // It was not recorded that b was m002. c was never shown.
  const registry = new IdsRegistry();
  expect(registry.give("elsewhere", session.reader)).toBe(3);
  expect(registry.numberOf("b", session.reader)).toBe(2);
  expect(registry.numberOf("c", session.reader)).toBeUndefined();
});

test("invalid records are ignored, and infinity takes no numbers away", () => {
  const session = new Session();
  for (const data of [
    null,
    "m001",
    { v: 2, ids: { a: "m001" } },
    { v: 1, ids: ["m001"] },
    { v: 1, ids: { a: null, b: Number.POSITIVE_INFINITY, c: "m01", d: "m999999999", [`${"e".repeat(300)}`]: "m001" } },
    { v: 1, ids: { f: "m001" } },
    { v: 1, ids: { g: "m001", f: "m002" } },
  ]) {
    session.record(`r${session.reader.getEntries().length}`, data);
  }
  session.add("x", { type: "message", message: { role: "assistant" } });
  session.add("y", { type: "message", message: { role: "user" } });
  session.answer("z");
  const registry = new IdsRegistry();
  expect(registry.numberOf("f", session.reader)).toBe(1);
  expect(registry.numberOf("g", session.reader)).toBeUndefined();
  expect(registry.give("h", session.reader)).toBe(3);
});

test("ids that the model names in its prose are counted, except those in tags and unknown ones", () => {
  expect(bareIds("m001, (m002). m003 m004x <dcp-message-id>m001</dcp-message-id>", 2)).toBe(2);
  const session = new Session();
  session.record("r1", { v: 1, ids: { a: "m001" } });
  session.answer("x", "as m001 and m002 say", "m001");
  expect(new IdsRegistry().bare(session.reader)).toBe(2);
});
