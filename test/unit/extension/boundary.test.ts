import type { BoundaryState, ExtensionContext, SessionBoundaryDraft } from "@earendil-works/pi-coding-agent";
import { expect, test } from "vitest";
import {
  type Boundary,
  type BoundaryAnswer,
  type BoundaryContributor,
  BoundaryWriter,
} from "../../../extension/boundary.ts";
import { assistant, compaction, pushed, session, user } from "./session.ts";

const reader = session(user("u1"), pushed("e1", "d1"), assistant("a1"), compaction("c1", "u1"));
reader.add({ ...user("u9"), parentId: "u1" });
reader.leaf = "c1";

const custom: SessionBoundaryDraft = { type: "custom", customType: "state", data: 1 };
const edit: SessionBoundaryDraft = { type: "context_edit", targetId: "u1", replacement: null };
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

test("drafts come in their order, behind those of other extensions", () => {
  const theirs: SessionBoundaryDraft = { type: "custom_message", customType: "theirs", content: "", display: false };
  const { answer } = write(
    [() => ({ drafts: [message, summary], continue: true }), () => ({ drafts: [edit, custom] })],
    { entries: [theirs] },
  );
  expect(answer).toEqual({ entries: [theirs, custom, edit, summary, message], continue: true });
});

test("without a wish pi gets no answer, and another's wish to go on is kept", () => {
  expect(write([() => undefined, () => ({ drafts: [] })]).answer).toBeUndefined();
  expect(write([() => ({ drafts: [message] })], { continue: true }).answer?.continue).toBe(true);
  expect(write([() => ({ drafts: [message] })]).answer?.continue).toBe(false);
});

test("a part that throws costs only its own drafts", () => {
  const broken: BoundaryContributor = () => {
    throw new Error("broken");
  };
  const { answer, faults } = write([broken, () => ({ drafts: [message] })]);
  expect(answer?.entries).toEqual([message]);
  expect(faults).toEqual(["turn_end/part0: broken"]);
});

test.for<[string, SessionBoundaryDraft]>([
  ["an edit of what is not there", { ...edit, targetId: "none" }],
  ["an edit of another branch", { ...edit, targetId: "u9" }],
  ["an edit of what cannot be edited", { ...edit, targetId: "c1" }],
  ["an edit without content", { ...edit, replacement: {} } as never],
  ["a compaction that keeps what is not there", { ...summary, firstKeptEntryId: "none" }],
  ["a compaction without a summary", { ...summary, summary: undefined } as never],
  ["a message without a type", { ...message, customType: "" }],
  ["a message of numbers", { ...message, content: 7 } as never],
  ["a message of wrong blocks", { ...message, content: [{ type: "image", data: "aGk=" }] } as never],
  ["a draft of no known kind", { type: "label" } as never],
])("%s is left out and voids nothing else", ([, wrong]) => {
  const { answer, faults } = write([() => ({ drafts: [wrong, message] })]);
  expect(answer?.entries).toEqual([message]);
  expect(faults).toHaveLength(1);
});

test("there is one edit for each target and one compaction, and others' come first", () => {
  const { answer, faults } = write([() => ({ drafts: [edit, summary, summary] })], { entries: [edit] });
  expect(answer?.entries).toEqual([edit, summary]);
  expect(faults).toHaveLength(2);
});

test.for<[string, SessionBoundaryDraft]>([
  ["an edit of a push's entry", { ...edit, targetId: "e1" }],
  [
    "an edit of an answer by blocks",
    { ...edit, targetId: "a1", replacement: { content: [{ type: "thinking", thinking: "…" }] } } as never,
  ],
  ["a compaction that keeps nothing", { ...summary, firstKeptEntryId: null }],
])("%s is taken", ([, draft]) => {
  expect(write([() => ({ drafts: [draft] })]).answer?.entries).toEqual([draft]);
});
