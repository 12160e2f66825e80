import { expect, test } from "vitest";
import { BranchReader } from "../../../acp/branch-reader.ts";
import type { Port } from "../../../acp/port.ts";
import type { PiEntry } from "../../../acp/updates/branch.ts";
import { unchecked } from "../../helpers/partial.ts";
import type { Unchecked } from "../../helpers/unchecked.ts";

/** Messages of a branch, some with long texts. */
function branchOf(count: number): Unchecked[] {
  return Array.from({ length: count }, (_, index) => ({
    type: "message",
    id: `e${index}`,
    parentId: index === 0 ? null : `e${index - 1}`,
    message: {
      role: index % 2 === 0 ? "user" : "assistant",
      timestamp: index,
      content: [{ type: "text", text: `text ${index}` }],
    },
  }));
}

interface Asked {
  readonly before?: string;
  readonly leafId?: string;
}

/** A daemon whose pages have as many entries as `size` says, with what `cut` leaves out of them. */
function portOf(
  branch: readonly Unchecked[],
  size: (call: number) => number,
  cut = (entry: Unchecked) => ({ entry, cuts: [] as Unchecked[] }),
) {
  const asked: Asked[] = [];
  const pieces = new Set<string>();
  const call = async (method: string, params: Unchecked): Promise<Unchecked> => {
    if (method === "transcript/entry") {
      pieces.add(params.path);
      const entry = branch.find(({ id }) => id === params.entryId);
      const value = params.path
        .split("/")
        .slice(1)
        .reduce((part: Unchecked, key: string) => part[key], entry);
      const text = typeof value === "string" ? value : JSON.stringify(value);
      const next = params.offset + 7;
      return { text: text.slice(params.offset, next), bytes: text.length, ...(next < text.length && { next }) };
    }
    asked.push(params);
    const end = params.before === undefined ? branch.length : Number(params.before);
    const start = Math.max(0, end - size(asked.length));
    const parts = branch.slice(start, end).map(cut);
    const cuts = parts.flatMap((part) => part.cuts);
    return {
      entries: parts.map(({ entry }) => entry),
      cuts,
      leafId: branch.at(-1)?.id ?? null,
      ...(start > 0 && { before: `${start}` }),
    };
  };
  return { port: unchecked<Pick<Port, "call">>({ call }), asked, pieces };
}

async function all(reader: BranchReader): Promise<PiEntry[]> {
  const entries: PiEntry[] = [];
  for await (const { whole } of reader.entries()) entries.push(await whole());
  return entries;
}

/** What is held, and at most was. */
function holder() {
  const held = { now: 0, most: 0 };
  const hold = (value: object): (() => void) => {
    const { length } = value as readonly unknown[];
    held.now += length;
    held.most = Math.max(held.most, held.now);
    return () => {
      held.now -= length;
    };
  };
  return { held, hold };
}

test("a branch is told from its beginning, with the pages of the beginning read once", async () => {
  const branch = branchOf(40);
  const { port, asked } = portOf(branch, () => 2);
  const { held, hold } = holder();
  const reader = await BranchReader.read({ port, sessionId: "s", hold });
  expect(reader.newest).toBe(branch[39]);
  expect(reader.title).toBe("text 0");
  expect(held.now).toBe(16);
  expect(await all(reader)).toEqual(branch);
  // Twenty pages, of which the later twelve are read again; the last one by its last entry.
  expect(asked).toHaveLength(32);
  expect(asked.at(-1)).toMatchObject({ leafId: "e39" });
  expect(held).toEqual({ now: 0, most: 18 });
});

test("pages that have more or fewer entries when they are read again leave nothing out and repeat nothing", async () => {
  const branch = branchOf(300);
  for (let seed = 1; seed <= 40; seed += 1) {
    let state = seed;
    const size = (): number => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      return state >>> 30 === 0 ? 0 : (state >>> 16) % 12;
    };
    const isLast = seed % 2 === 0 ? (entry: Unchecked) => entry.id === `e${seed * 5}` : undefined;
    const reader = await BranchReader.read({
      port: portOf(branch, size).port,
      sessionId: "s",
      hold: () => () => {},
      isLast,
    });
    expect(await all(reader)).toEqual(isLast === undefined ? branch : branch.slice(seed * 5 + 1));
  }
});

test("only what comes after an entry is read", async () => {
  const branch = branchOf(50);
  const { port, asked } = portOf(branch, () => 4);
  const read = (id: string) =>
    BranchReader.read({ port, sessionId: "s", hold: () => () => {}, isLast: (entry) => entry["id"] === id });
  const reader = await read("e44");
  expect(reader.isLastFound).toBe(true);
  expect(asked).toHaveLength(2);
  expect(await all(reader)).toEqual(branch.slice(45));
  expect(await all(await read("e49"))).toEqual([]);
  const none = await read("none");
  expect(none.isLastFound).toBe(false);
  none.close();
  expect(await all(none)).toEqual([]);
  expect(
    await all(await BranchReader.read({ port: portOf([], () => 4).port, sessionId: "s", hold: () => () => {} })),
  ).toEqual([]);
});

test("an entry is whole again: texts, values that were left out, and what is in these", async () => {
  const entry = {
    ...branchOf(1)[0],
    message: {
      role: "user",
      content: [{ type: "text", text: "a long text" }, { "a/b": "another long text" }],
      details: [[1, "a third long text"], 2],
    },
  };
  const { message } = entry;
  const cut = {
    entry: { ...entry, message: { ...message, content: [{ type: "text", text: "a l" }, { "a/b": "" }], details: [] } },
    cuts: [
      { entryId: "e0", path: "/message/content/0/text", bytes: 11, shown: 3 },
      { entryId: "e0", path: "/message/details/0/1", bytes: 17, shown: 0 },
      { entryId: "e0", path: "/message/details", bytes: 27, shown: 0 },
    ],
  };
  const { port, pieces } = portOf(
    [entry],
    () => 1,
    () => cut,
  );
  const whole = { ...entry, message: { ...message, content: [message.content[0], { "a/b": "" }] } };
  const reader = await BranchReader.read({ port, sessionId: "s", hold: () => () => {} });
  expect(await all(reader)).toEqual([whole]);
  // Of a value that was left out, no parts are read.
  expect([...pieces]).toEqual(["/message/content/0/text", "/message/details"]);
  const outline = portOf(
    [entry],
    () => 1,
    () => ({
      entry: { type: "message", id: "e0", parentId: null },
      cuts: [{ entryId: "e0", path: "", bytes: 9, shown: 0 }],
    }),
  );
  expect(await all(await BranchReader.read({ port: outline.port, sessionId: "s", hold: () => () => {} }))).toEqual([
    entry,
  ]);
  const huge = portOf(
    [entry],
    () => 1,
    () => ({ ...cut, cuts: [{ ...cut.cuts[0], bytes: 65 * 1024 * 1024 }] }),
  );
  expect(await all(await BranchReader.read({ port: huge.port, sessionId: "s", hold: () => () => {} }))).toEqual([
    cut.entry,
  ]);
});

test("what is held is let go when reading fails, and when a reader stops", async () => {
  const branch = branchOf(20);
  const { held, hold } = holder();
  const { port } = portOf(branch, (call) => {
    if (call === 3) throw new Error("lost");
    return 2;
  });
  await expect(BranchReader.read({ port, sessionId: "s", hold })).rejects.toThrow("lost");
  expect(held.now).toBe(0);
  const reader = await BranchReader.read({ port: portOf(branch, () => 2).port, sessionId: "s", hold });
  for await (const { entry } of reader.entries()) if (entry["id"] === "e5") break;
  expect(held.now).toBe(0);
});
