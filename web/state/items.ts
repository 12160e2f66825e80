import type { ReadonlySignal } from "@preact/signals";
import type { By, DeliveryState, Evidence } from "../../client/browser.ts";
import type { Block } from "../text/blocks.ts";
import type { Outcome } from "./outcome.ts";

// What a conversation shows. A row keeps its place and its id; its item is replaced when it changes.

export interface Row {
  readonly id: string;
  readonly item: ReadonlySignal<Item>;
}

/** Some rows in order. Views build only the groups near the view. */
export interface RowGroup {
  readonly id: string;
  readonly rows: ReadonlySignal<readonly Row[]>;
}

export type Item = UserItem | TextItem | ThoughtItem | ToolItem | PushItem | NoteItem | GapItem;

interface Common {
  /** Unix time in milliseconds. Undefined: unknown. */
  readonly at: number | undefined;
  /** pi's entry. Undefined while pi has not written it, or where it is unknown. */
  readonly entryId?: string;
}

/** A text that may be long. The page has its beginning; the rest comes in pieces. */
export interface LongText {
  /** What the page has. */
  readonly text: ReadonlySignal<string>;
  /** How many bytes of UTF-8 are not here, at least. 0: the text is whole. */
  readonly missing: ReadonlySignal<number>;
  readonly isLoading: ReadonlySignal<boolean>;
  /** Loads the next piece. */
  more(): Promise<Outcome>;
}

export type PictureState =
  | { readonly kind: "away" }
  | { readonly kind: "loading" }
  /** `url` is a `blob:` of this page. */
  | { readonly kind: "shown"; readonly url: string }
  | { readonly kind: "refused"; readonly words: string };

/** An image of a message: PNG, JPEG, GIF or WebP. */
export interface Picture {
  readonly id: string;
  readonly mimeType: string;
  readonly state: ReadonlySignal<PictureState>;
  /** Fetches it. Call the returned function when it is not shown any more: then its memory is freed. */
  show(): () => void;
}

/** Who did something. `you`: this page. `name` is the name that the client chose: foreign text. */
export type Who =
  | { readonly kind: "you" }
  | { readonly kind: "client"; readonly name: string | undefined; readonly by: By }
  | { readonly kind: "unknown" };

export interface UserItem extends Common {
  readonly kind: "user";
  readonly text: LongText;
  readonly pictures: readonly Picture[];
  readonly who: Who;
}

/** On the first row of an answer of the model. */
export interface AnswerHead {
  readonly model: string;
  readonly at: number | undefined;
}

/**
 * `streaming`: more comes. `incomplete`: more comes, but some live text was left out; the end of the message brings it.
 * `cut`: the message ended without its end, by an abort, an error or a crash.
 */
export type Progress = "streaming" | "incomplete" | "whole" | "cut";

interface OfAnswer extends Common {
  readonly head?: AnswerHead;
}

export interface TextItem extends OfAnswer {
  readonly kind: "text";
  readonly progress: Progress;
  /** The text as Markdown. Blocks that did not change are the same objects as before. */
  readonly blocks: readonly Block[];
  /** The text as it was written, to copy. Loading more of it adds blocks. */
  readonly text: LongText;
}

export interface ThoughtItem extends OfAnswer {
  readonly kind: "thought";
  readonly progress: Progress;
  readonly text: LongText;
  /** The provider does not show this thought. */
  readonly isRedacted: boolean;
}

/** `writing`: its arguments stream. `called`: it waits for its turn. `lost`: it never ended. */
export type ToolState = "writing" | "called" | "running" | "done" | "failed" | "lost";

export interface ToolItem extends OfAnswer {
  readonly kind: "tool";
  readonly callId: string;
  readonly name: string;
  /** What it works on, in one line: a path, a command. Foreign text. */
  readonly what: string;
  readonly state: ToolState;
  readonly startedAt?: number;
  readonly endedAt?: number;
  /** The arguments as JSON; for `write` and `edit` see also `diff`. */
  readonly args: LongText;
  /** What it returned, or so far. Undefined: nothing yet. */
  readonly output?: LongText;
  /** pi's entry with what it returned. */
  readonly outputEntryId?: string;
  readonly pictures: readonly Picture[];
  /** pi's own diff of `edit`, or the new text of `write` as added lines. */
  readonly diff?: LongText;
  readonly added?: number;
  readonly removed?: number;
  /** Whether it changes files. */
  readonly isChange: boolean;
  /** A command that a user ran in the session, not the model. */
  readonly isOfUser: boolean;
}

export interface PushItem extends Common {
  readonly kind: "push";
  /** Undefined: the message of an extension, without a delivery. */
  readonly deliveryId?: string;
  readonly customType: string;
  readonly text: LongText;
  readonly pictures: readonly Picture[];
  /** Undefined: not known. */
  readonly state?: DeliveryState;
  readonly evidence?: Evidence;
  /** Why it is in this state. */
  readonly reason?: string;
}

export type NoteAbout =
  | "compaction"
  | "retry"
  | "abort"
  | "failure"
  | "model"
  | "level"
  | "name"
  | "block"
  | "branch"
  | "summary"
  | "control"
  | "file"
  | "question"
  | "session"
  | "cost"
  | "extension";

export interface NoteItem extends Common {
  readonly kind: "note";
  readonly about: NoteAbout;
  readonly tone: "plain" | "warning" | "error";
  /** A sentence. It can contain foreign text. */
  readonly words: string;
  /** Foreign text that belongs to it: a summary, the end of stderr. */
  readonly detail?: LongText;
  readonly who: Who;
  /** What can be done about it. */
  readonly action?: NoteAction;
}

export interface NoteAction {
  /** For a button. */
  readonly words: string;
  run(): Promise<Outcome>;
}

export interface GapItem extends Common {
  readonly kind: "gap";
  /** What is missing and why. */
  readonly words: string;
  readonly isReading: boolean;
  /** Reads it from the session's file. */
  readAgain(): Promise<Outcome>;
}
