import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { expect, test } from "vitest";
import { createRequestEntries } from "../../../../context/parts/map/request-entries.ts";
import type { Recaller } from "../../../../context/parts/recall/tool.ts";
import type { PruningServices } from "../../../../context/pruning/pruning-services.ts";
import { BLOCKS_MARK } from "../../../../context/pruning/record.ts";
import type { BoundaryAnswer } from "../../../../extension/boundary.ts";
import { defaultPruning } from "../../../../protocol/pruning/config.ts";
import { partial, unchecked } from "../../../helpers/partial.ts";
import { fakeHost } from "../fake-host.ts";
import { Branch, blockOf, blocksOf } from "./branch.ts";

/** The part in a session of eight messages. */
function blocks() {
  const branch = new Branch();
  const users = Array.from({ length: 8 }, (_, at) => branch.user(`Message ${at}.`));
  const host = fakeHost(branch.context);
  const sources: Recaller[] = [];
  const off = { why: undefined as string | undefined, recall: undefined as string | undefined };
  Object.assign(host.pi, {
    appendEntry: (customType: string, data: unknown) => void branch.add({ type: "custom", customType, data }),
  });
  const changed: string[][] = [];
  const services = partial<PruningServices>({
    ...host,
    cacheRule: { changed: (part, ids) => void changed.push([part, ...ids]) },
    pruning: () => ({ ...defaultPruning, enabled: true }),
    off: () => off.why,
    entries: createRequestEntries(host, { ambiguous: () => {}, clear: () => {} }),
    recall: { need: () => {}, missing: () => off.recall, addSource: (source) => void sources.push(source) },
  });
  const made = blocksOf(services);
  const stateOf = (id: string) => made.on(branch.context).find(id)?.state.kind;
  /** Writes the writer's entries to the branch. */
  const boundary = (drafts: readonly object[] = []): readonly object[] => {
    const state = { entries: drafts, continue: false };
    const given = { hook: "turn_end", state, ctx: branch.context } as unknown as Parameters<
      typeof host.boundary.write
    >[0];
    const answer = host.boundary.write(given) as BoundaryAnswer | undefined;
    for (const entry of answer?.entries ?? []) branch.add(unchecked(entry));
    return answer?.entries ?? [];
  };
  const recall = async (id: string) => (await sources[0]?.(id, branch.context))?.text;
  const context = (): ExtensionContext => branch.context;
  return { branch, users, host, made, stateOf, boundary, recall, off, context, changed };
}

test("between runs the user's change of a block is written immediately", () => {
  const { branch, users, made, stateOf, context, changed } = blocks();
  branch.compress("T", blockOf("b1", users.slice(1, 3), "A"));
  expect(made.operate("decompress", "b1", context())).toBe("now");
  expect(stateOf("b1")).toBe("inactive");
  expect(changed).toEqual([["pruning", ...users.slice(1, 3)]]);
  expect(branch.entries.at(-1)).toMatchObject({
    customType: BLOCKS_MARK,
    data: { operation: "decompress", block: "b1" },
  });
});

test("during a run it is written at the next boundary, once", () => {
  const { branch, users, made, stateOf, boundary, context, changed } = blocks();
  branch.compress("T", blockOf("b1", users.slice(1, 3), "A"));
  branch.isIdle = false;
  expect(made.operate("decompress", "b1", context())).toBe("soon");
  expect(stateOf("b1")).toBe("active");
  expect(changed).toEqual([]);
  expect(boundary()).toHaveLength(1);
  expect(changed).toEqual([["pruning", ...users.slice(1, 3)]]);
  expect(stateOf("b1")).toBe("inactive");
  expect(boundary()).toEqual([]);
});

test("a proposal that a boundary did not accept is repeated, and written when the run has settled", () => {
  const { branch, users, host, made, stateOf, context } = blocks();
  branch.compress("T", blockOf("b1", users.slice(1, 3), "A"));
  branch.isIdle = false;
  made.operate("decompress", "b1", context());
  host.emit("agent_settled", {});
  expect(stateOf("b1")).toBe("inactive");
  const entries = branch.entries.length;
  host.emit("agent_settled", {});
  expect(branch.entries).toHaveLength(entries);
});

test("of several pending changes of a block the last one counts", () => {
  const { branch, users, made, stateOf, boundary, context } = blocks();
  branch.compress("T", blockOf("b1", users.slice(1, 3), "A"));
  branch.isIdle = false;
  made.operate("decompress", "b1", context());
  made.operate("recompress", "b1", context());
  expect(boundary()).toEqual([]);
  expect(stateOf("b1")).toBe("active");
});

test("a user's block is written like one of the model's, unless it no longer fits", () => {
  const { branch, users, made, stateOf, boundary, context } = blocks();
  branch.isIdle = false;
  const record = (id: string) => ({ v: 1 as const, topic: "T", blocks: [blockOf(id, users.slice(1, 3), "A")] });
  expect(made.nextId(context())).toBe("b1");
  expect(made.store(record("b1"), context())).toBe("soon");
  expect([made.nextId(context()), made.nextId(context(), 2)]).toEqual(["b2", "b4"]);
  expect(boundary()).toHaveLength(1);
  expect(stateOf("b1")).toBe("active");
  branch.isIdle = true;
  made.store(record("b2"), context());
  expect(stateOf("b2")).toBeUndefined();
  expect(made.nextId(context())).toBe("b3");
});

test("a pending block that no longer fits is dropped, which is reported once", () => {
  const { branch, users, host, made, stateOf, boundary, context } = blocks();
  branch.isIdle = false;
  const record = { v: 1 as const, topic: "T", blocks: [blockOf("b1", users.slice(0, 2), "A")] };
  made.store(record, context());
  branch.compress("The model's", blockOf("b2", users.slice(1, 3), "B"));
  expect(boundary()).toEqual([]);
  expect(boundary()).toEqual([]);
  const entries = branch.entries.length;
  host.emit("agent_settled", {});
  expect(branch.entries).toHaveLength(entries);
  expect(host.faults.map(({ where, thrown }) => [where, String(thrown)])).toEqual([
    ["blocks/compress", "Error: b1 does not fit the branch any more and was dropped."],
  ]);
  expect(stateOf("b1")).toBeUndefined();
});

test("a pending change counts for later operations in the run", () => {
  const { branch, users, host, made, stateOf, boundary, context } = blocks();
  branch.compress("T", blockOf("b1", users.slice(1, 3), "A"));
  branch.isIdle = false;
  const over = (id: string, body: Parameters<typeof blockOf>[2], to = 4) => ({
    v: 1 as const,
    topic: "T",
    blocks: [blockOf(id, users.slice(0, to), body)],
  });
  expect(made.ahead(context())).toBe(made.on(context()));
  made.operate("decompress", "b1", context());
  expect(made.ahead(context()).hinders("recompress", "b1")).toBeUndefined();
  expect(made.takes(over("b2", [{ block: "b1" }]), context())).toBe(false);
  expect(made.takes(over("b2", "B"), context())).toBe(true);
  expect(made.takes({ ...over("b2", "B"), topic: "" }, context())).toBe(false);
  made.store(over("b2", "B"), context());
  expect(made.takes(over("b3", "C", 5), context())).toBe(false);
  expect(made.ahead(context()).hinders("recompress", "b1")).toBe("b2 covers a part of b1.");
  made.operate("decompress", "b2", context());
  expect(boundary()).toHaveLength(3);
  expect(boundary()).toEqual([]);
  expect([stateOf("b1"), stateOf("b2")]).toEqual(["inactive", "inactive"]);
  expect(host.faults).toEqual([]);
});

test("ids are counted over all branches of the file, and none is assigned twice", () => {
  const { branch, users, made, context } = blocks();
  branch.compress("T", blockOf("b1", users.slice(1, 3), "A"));
  branch.compress("Fits nothing", blockOf("b7", ["nowhere"], "A"));
  branch.go(users[0] as string);
  expect(made.nextId(context())).toBe("b8");
  branch.compress("A hand's", blockOf("b999999999", users.slice(0, 1), "A"));
  expect(made.nextId(context())).toBe("b8");
});

test("recall returns the stored text of any block of the branch, with its inner blocks", async () => {
  const { branch, users, recall } = blocks();
  const text = " Wörter, 🦊,\r\n\ttabs and (b7).\n\n";
  branch.compress("One", blockOf("b1", users.slice(1, 2), text));
  branch.compress("Two", blockOf("b2", users.slice(0, 3), [{ text: "A" }, { block: "b1" }, { text: "B" }]));
  expect(await recall("b1")).toBe(text);
  expect(await recall("(B02)")).toBe(`A${text}B`);
  expect(await recall("<dcp-message-id>b2</dcp-message-id>")).toBe(`A${text}B`);
  expect(await recall("r002")).toBeUndefined();
  expect(await recall("b3")).toBeUndefined();
  branch.compact(users[7] as string);
  expect(await recall("b1")).toBe(text);
});

test("nothing under an active block is edited, and everything may be edited after the block is decompressed", () => {
  const { branch, users, host, made, boundary, off, context } = blocks();
  branch.compress("T", blockOf("b1", users.slice(1, 3), "A"));
  const edit = (at: number) => ({ type: "context_edit" as const, targetId: users[at] as string, replacement: null });
  host.boundary.contribute("masking", () => ({ drafts: [edit(1), edit(5)] }), { edits: "masking" });
  expect(boundary()).toEqual([edit(5)]);
  made.operate("decompress", "b1", context());
  expect(boundary()).toEqual([edit(1)]);
  expect(host.boundary.isProtected(users[2] as string, context())).toBe(false);
  made.operate("recompress", "b1", context());
  expect(host.boundary.isProtected(users[2] as string, context())).toBe(true);
  off.why = "off";
  expect(host.boundary.isProtected(users[2] as string, context())).toBe(false);
});

test("nothing is edited at the boundary at which a block becomes active", () => {
  const { branch, users, host, made, boundary, context } = blocks();
  branch.isIdle = false;
  const edit = (at: number) => ({ type: "context_edit" as const, targetId: users[at] as string, replacement: null });
  host.boundary.contribute("masking", () => ({ drafts: [edit(1), edit(5)] }), { edits: "masking" });
  made.store({ v: 1, topic: "T", blocks: [blockOf("b1", users.slice(1, 3), "A")] }, context());
  expect(boundary()).toEqual([expect.objectContaining({ type: "custom" }), edit(5)]);
  made.operate("decompress", "b1", context());
  expect(boundary()).toEqual([expect.objectContaining({ type: "custom" })]);
  expect(boundary()).toEqual([edit(1)]);
});

test("with pruning off requests are unchanged", () => {
  const { branch, users, host, off, context } = blocks();
  branch.compress("T", blockOf("b1", users.slice(1, 3), "A"));
  off.why = "off";
  const messages = branch.messages.map(({ message }) => message);
  expect(host.pipeline.run("context_with_system", messages, context())).toBe(messages);
  expect(host.faults).toEqual([]);
});

test("without the recall tool no block is shortened, because its rest would be unreachable", () => {
  const { branch, users, host, off, context } = blocks();
  branch.window = 10_000;
  branch.compress("T", blockOf("b1", users.slice(1, 3), "word ".repeat(3_000)));
  const messages = branch.messages.map(({ message }) => message);
  const projection = branch.messages.map(({ entryId: id, message }) => ({ sourceEntry: { id }, messages: [message] }));
  const ctx = context();
  Object.assign(ctx.sessionManager, { buildSessionProjection: () => ({ entries: projection }) });
  host.pipeline.run("context", { type: "context", messages: [...messages] }, ctx);
  const request = () => JSON.stringify(host.pipeline.run("context_with_system", messages, ctx));
  expect(request()).toContain("recall b1]");
  off.recall = "The tool recall is not active.";
  expect(request()).toContain("word ".repeat(2_999));
  expect(request()).not.toContain("recall b1]");
});
