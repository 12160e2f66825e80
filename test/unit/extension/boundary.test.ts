import type { BoundaryState, ExtensionContext, SessionBoundaryDraft } from "@earendil-works/pi-coding-agent";
import { expect, test } from "vitest";
import {
  type Boundary,
  type BoundaryAnswer,
  type BoundaryContributor,
  BoundaryWriter,
  type EditKind,
} from "../../../extension/boundary.ts";
import { unchecked } from "../../helpers/partial.ts";
import { assistant, compaction, type FakeSession, pushed, session, user } from "./session.ts";

const reader = session(user("u1"), pushed("e1", "d1"), assistant("a1"), compaction("c1", "u1"));
reader.add({ ...user("u9"), parentId: "u1" });
reader.leaf = "c1";

const custom: SessionBoundaryDraft = { type: "custom", customType: "state", data: 1 };
const edit: SessionBoundaryDraft = { type: "context_edit", targetId: "a1", replacement: null };
const summary: SessionBoundaryDraft = { type: "compaction", summary: "…", firstKeptEntryId: "a1" };
const message: SessionBoundaryDraft = { type: "custom_message", customType: "test", content: "Hello.", display: true };

function write(
  contributors: readonly BoundaryContributor[],
  state: Partial<BoundaryState> = {},
): { readonly answer: BoundaryAnswer | undefined; readonly faults: readonly string[] } {
  const faults: string[] = [];
  const writer = new BoundaryWriter((where, thrown) => faults.push(`${where}: ${(thrown as Error).message}`));
  for (const [index, contributor] of contributors.entries()) writer.contribute(`part${index}`, contributor);
  const boundary = {
    hook: "turn_end",
    state: { entries: [], continue: false, outcome: "completed", ...state },
    ctx: { sessionManager: reader } as unknown as ExtensionContext,
  } as unknown as Boundary;
  return { answer: writer.write(boundary) as BoundaryAnswer | undefined, faults };
}

test("drafts keep their order, after those of other extensions", () => {
  const theirs: SessionBoundaryDraft = { type: "custom_message", customType: "theirs", content: "", display: false };
  const { answer } = write(
    [() => ({ drafts: [message, summary], continue: true }), () => ({ drafts: [edit, custom] })],
    { entries: [theirs] },
  );
  expect(answer).toEqual({ entries: [theirs, custom, edit, summary, message], continue: true });
});

test("without a contribution pi gets no answer, and another extension's wish to continue is kept", () => {
  expect(write([() => undefined, () => ({ drafts: [] })]).answer).toBeUndefined();
  expect(write([() => ({ drafts: [message] })], { continue: true }).answer?.continue).toBe(true);
  expect(write([() => ({ drafts: [message] })]).answer?.continue).toBe(false);
});

test("a part that throws loses only its own drafts", () => {
  const broken: BoundaryContributor = () => {
    throw new Error("broken");
  };
  const { answer, faults } = write([broken, () => ({ drafts: [message] })]);
  expect(answer?.entries).toEqual([message]);
  expect(faults).toEqual(["turn_end/part0: broken"]);
});

test.for<[string, SessionBoundaryDraft]>([
  ["an edit of a missing entry", { ...edit, targetId: "none" }],
  ["an edit of another branch", { ...edit, targetId: "u9" }],
  ["an edit of an entry that cannot be edited", { ...edit, targetId: "c1" }],
  ["an edit without content", unchecked({ ...edit, replacement: {} })],
  ["a compaction that keeps a missing entry", { ...summary, firstKeptEntryId: "none" }],
  ["a compaction without a summary", unchecked({ ...summary, summary: undefined })],
  ["a message without a type", { ...message, customType: "" }],
  ["a message of numbers", unchecked({ ...message, content: 7 })],
  ["a message of wrong blocks", unchecked({ ...message, content: [{ type: "image", data: "aGk=" }] })],
  ["a draft of no known kind", unchecked({ type: "label" })],
])("%s is left out and voids nothing else", ([, wrong]) => {
  const { answer, faults } = write([() => ({ drafts: [wrong, message] })]);
  expect(answer?.entries).toEqual([message]);
  expect(faults).toHaveLength(1);
});

test("there is one edit for each target and one compaction, and others' drafts come first", () => {
  const { answer, faults } = write([() => ({ drafts: [edit, summary, summary] })], { entries: [edit] });
  expect(answer?.entries).toEqual([edit, summary]);
  expect(faults).toEqual(["turn_end/compaction: A draft was left out: the boundary already has a compaction."]);
});

test.for<[string, SessionBoundaryDraft]>([
  ["an edit of a push's entry", { ...edit, targetId: "e1" }],
  [
    "an edit of an answer by blocks",
    unchecked({ ...edit, targetId: "a1", replacement: { content: [{ type: "thinking", thinking: "…" }] } }),
  ],
  ["a compaction that keeps nothing", { ...summary, firstKeptEntryId: null }],
])("%s is taken", ([, draft]) => {
  expect(write([() => ({ drafts: [draft] })]).answer?.entries).toEqual([draft]);
});

const replaced = (text: string): SessionBoundaryDraft =>
  ({ type: "context_edit", targetId: "u1", replacement: { content: text } }) as SessionBoundaryDraft;

function writeEdits(
  kinds: readonly (EditKind | undefined)[],
  reader: FakeSession,
  isUnanswered: (id: string) => boolean = () => false,
): unknown[] {
  const writer = new BoundaryWriter((_where, thrown) => expect.unreachable(String(thrown)), isUnanswered);
  for (const [at, edits] of kinds.entries()) {
    const options = edits === undefined ? {} : { edits };
    writer.contribute(`part${at}`, () => ({ drafts: [replaced(edits ?? "any")] }), options);
  }
  const boundary = { hook: "turn_end", state: { entries: [] }, ctx: { sessionManager: reader } } as unknown as Boundary;
  return (writer.write(boundary) as BoundaryAnswer | undefined)?.entries ?? [];
}

const plain = (): FakeSession => session(user("u0"), user("u1"), assistant("a1"));

test("of several edits of an entry the most important one is written", () => {
  const kinds: EditKind[] = ["deduplication", "stale", "errors", "masking", "decay"];
  const first = (given: readonly (EditKind | undefined)[]): unknown[] => writeEdits(given, plain());
  expect(first([undefined, ...kinds.toReversed()])).toEqual([replaced("deduplication")]);
  expect(first(["decay", "masking", "errors"])).toEqual([replaced("errors")]);
  expect(first([undefined, "decay"])).toEqual([replaced("decay")]);
});

test("an entry that was already edited by anyone is not edited again", () => {
  const reader = plain();
  reader.add({ type: "context_edit", id: "x1", targetId: "u1", replacement: null });
  expect(writeEdits(["masking"], reader)).toEqual([]);
  // On another branch it is unchanged.
  reader.add({ ...user("u2"), parentId: "a1" });
  expect(writeEdits(["masking"], reader)).toEqual([replaced("masking")]);
});

test("an entry that carries an unanswered push is not edited", () => {
  expect(writeEdits(["masking"], plain(), (id) => id === "u1")).toEqual([]);
});

test("an entry that is no longer in the context is not edited", () => {
  const reader = plain();
  reader.add(compaction("c1", "a1"));
  expect(writeEdits(["masking"], reader)).toEqual([]);
  const kept = plain();
  kept.add(compaction("c1", "u1"));
  expect(writeEdits(["masking"], kept)).toEqual([replaced("masking")]);
  const none = plain();
  none.add(compaction("c1", "c1"));
  expect(writeEdits(["masking"], none)).toEqual([]);
});

test("entries that a compaction of this boundary drops are not edited", () => {
  const drops: SessionBoundaryDraft = { type: "compaction", summary: "…", firstKeptEntryId: null };
  expect(write([() => ({ drafts: [edit] }), () => ({ drafts: [drops] })]).answer?.entries).toEqual([drops]);
  const early = replaced("early");
  expect(write([() => ({ drafts: [early] }), () => ({ drafts: [summary] })]).answer?.entries).toEqual([summary]);
  const keeps: SessionBoundaryDraft = { ...drops, firstKeptEntryId: "u1" };
  expect(write([() => ({ drafts: [early] }), () => ({ drafts: [keeps] })]).answer?.entries).toEqual([early, keeps]);
});
