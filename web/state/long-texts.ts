import { type ReadonlySignal, type Signal, signal } from "@preact/signals";
import type { TranscriptCut } from "../../protocol/transcript-methods.ts";
import type { Daemon } from "./daemon.ts";
import type { LongText } from "./items.ts";
import { done, type Outcome, outcomeOf } from "./outcome.ts";
import { read } from "./reading.ts";

/** How much of a text that the page has is shown at once, in UTF-16 units: an element with millions hangs a page. */
const shownChars = 64 * 1_024;
const pieceBytes = 256 * 1_024;

/** A value of an entry in the session's file, from a place on. */
export interface Rest {
  readonly entryId: string;
  readonly path: string;
  readonly place: string | undefined;
  /** Where it goes on, in bytes. */
  readonly offset: number;
  readonly bytes: number;
}

/** A part of a text: what the page has of it, and the rest in the session's file. */
export interface Segment {
  readonly text: string;
  readonly rest?: Rest | undefined;
}

export type PieceReader = (rest: Rest) => Promise<{ readonly text: string; readonly next?: number | undefined }>;

/** Reads pieces of a session's entries. */
export function pieceReader(daemon: Pick<Daemon, "call">, sessionId: string): PieceReader {
  return ({ entryId, path, place, offset }) =>
    read(daemon, "transcript/entry", {
      sessionId,
      entryId,
      path,
      offset,
      length: pieceBytes,
      ...(place === undefined ? {} : { place }),
    });
}

/** The rest of a value that a page has cut. */
export function restOf({ entryId, path, place, shown, bytes }: TranscriptCut): Rest {
  return { entryId, path, place, offset: shown, bytes };
}

interface PiecesOptions {
  readonly read?: PieceReader | undefined;
  readonly onMore?: (added: string) => void;
  readonly change?: (added: string) => string;
}

/** A text of segments, shown in order up to the first that is not whole. */
export class Pieces implements LongText {
  readonly #segments: Segment[];
  readonly #read: PieceReader | undefined;
  readonly #text: Signal<string>;
  readonly #missing: Signal<number>;
  readonly #isLoading = signal(false);
  readonly #onMore: (added: string) => void;
  readonly #change: (added: string) => string;

  /** `onMore` is called with each text that is added, `change` before that: it returns what is shown of it. */
  constructor(segments: readonly Segment[], options: PiecesOptions = {}) {
    this.#segments = [...segments];
    this.#read = options.read;
    this.#onMore = options.onMore ?? (() => {});
    this.#change = options.change ?? ((added) => added);
    this.#text = signal("");
    this.#missing = signal(0);
    this.#show();
  }

  get text(): ReadonlySignal<string> {
    return this.#text;
  }

  get missing(): ReadonlySignal<number> {
    return this.#missing;
  }

  get isLoading(): ReadonlySignal<boolean> {
    return this.#isLoading;
  }

  async more(): Promise<Outcome> {
    const [segment] = this.#segments;
    if (segment === undefined || this.#isLoading.value) return done;
    if (segment.text !== "" || segment.rest === undefined || this.#read === undefined) {
      this.#show();
      return done;
    }
    const { rest } = segment;
    const readPiece = this.#read;
    this.#isLoading.value = true;
    const outcome = await outcomeOf(() => readPiece(rest));
    this.#isLoading.value = false;
    if (outcome.kind === "refused") return outcome;
    const { text, next } = outcome.value;
    this.#segments[0] = { text, rest: next === undefined ? undefined : { ...rest, offset: next } };
    this.#show();
    return done;
  }

  /** Shows more of what the page has. */
  #show(): void {
    let added = "";
    while (added.length < shownChars) {
      const [segment] = this.#segments;
      if (segment === undefined) break;
      const part = firstChars(segment.text, shownChars - added.length);
      added += part;
      const left = segment.text.slice(part.length);
      if (left === "" && segment.rest === undefined) this.#segments.shift();
      else {
        this.#segments[0] = { ...segment, text: left };
        break;
      }
    }
    this.#missing.value = this.#segments.reduce((sum, { text, rest }) => sum + text.length + missingOf(rest), 0);
    if (added === "") return;
    const shown = this.#change(added);
    this.#text.value += shown;
    this.#onMore(shown);
  }
}

/** A text that the page has. */
export function wholeText(text: string): LongText {
  return new Pieces([{ text }]);
}

/** A text that grows while it is shown, and is shown as a whole. */
export class LiveText implements LongText {
  readonly text: Signal<string>;
  readonly missing = signal(0);
  readonly isLoading = signal(false);

  constructor(text = "") {
    this.text = signal(text);
  }

  more(): Promise<Outcome> {
    return Promise.resolve(done);
  }
}

function missingOf(rest: Rest | undefined): number {
  return rest === undefined ? 0 : Math.max(1, rest.bytes - rest.offset);
}

/** At most so many, without half a pair. */
function firstChars(text: string, count: number): string {
  if (text.length <= count) return text;
  const isHalf = /[\ud800-\udbff]/.test(text.charAt(count - 1));
  return text.slice(0, isHalf ? count - 1 : count);
}
