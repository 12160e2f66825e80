import { WireError } from "../../client/browser.ts";
import type { Daemon } from "./daemon.ts";
import { type Outcome, outcomeOf, wordsOf } from "./outcome.ts";
import { isRecord, type PiValue } from "./pi-values.ts";
import { act, read } from "./reading.ts";

/** What a fork has made. */
export interface Forked {
  readonly sessionId: string;
  /** The message before which it ends. */
  readonly text: string | undefined;
}

export type ForkOutcome =
  | Extract<Outcome<Forked>, { kind: "done" }>
  /** `isBusy`: with `abortRun` it may be possible. */
  | { readonly kind: "refused"; readonly words: string; readonly isBusy: boolean };

/** Where a fork ends: before a user's message, or at the end of the active branch. */
export type ForkPlace =
  | { readonly kind: "entry"; readonly entryId: string }
  /** A message that the page has only from an event. `at`: its time in Unix milliseconds. */
  | { readonly kind: "message"; readonly at: number | undefined }
  | { readonly kind: "end" };

/** Makes branches of a session, because a person asked for it. */
export class Branching {
  readonly #daemon: Daemon;
  readonly #sessionId: string;

  constructor({ daemon, sessionId }: { readonly daemon: Daemon; readonly sessionId: string }) {
    this.#daemon = daemon;
    this.#sessionId = sessionId;
  }

  /** Makes a new session, which takes over the pi. */
  async fork(place: ForkPlace, abortRun = false): Promise<ForkOutcome> {
    try {
      return { kind: "done", value: await this.#fork(place, abortRun) };
    } catch (error) {
      const isBusy = !abortRun && error instanceof WireError && error.kind === "session_busy";
      return { kind: "refused", words: wordsOf(error), isBusy };
    }
  }

  /** Continues the session from an entry. Resolves with the text of the message before which its branch ends now. */
  async goOn(entryId: string): Promise<Outcome<string | undefined>> {
    const outcome = await outcomeOf(() =>
      act(this.#daemon, "session/navigate", { sessionId: this.#sessionId, entryId }),
    );
    if (outcome.kind === "refused") return outcome;
    const { outcome: how, text } = outcome.value;
    if (how === "cancelled") return { kind: "refused", words: "An extension of pi refused it; nothing has changed." };
    return { kind: "done", value: text };
  }

  async #fork(place: ForkPlace, abortRun: boolean): Promise<Forked> {
    const of = { sessionId: this.#sessionId, abortRun };
    if (place.kind === "end") {
      const { session } = await act(this.#daemon, "session/clone", of);
      return { sessionId: session.sessionId, text: undefined };
    }
    const entryId = place.kind === "entry" ? place.entryId : await this.#entryAt(place.at);
    const { session, text } = await act(this.#daemon, "session/fork", { ...of, entryId });
    return { sessionId: session.sessionId, text };
  }

  /** The entry of a user's message, which is among the newest. */
  async #entryAt(at: number | undefined): Promise<string> {
    const { entries } = await read(this.#daemon, "transcript/page", { sessionId: this.#sessionId, limit: 1_000 });
    const entry = entries.findLast((each) => isUserAt((each as PiValue)["message"], at));
    if (entry === undefined) throw new Error("pi has not written this message yet.");
    return entry.id;
  }
}

function isUserAt(message: unknown, at: number | undefined): boolean {
  return isRecord(message) && message["role"] === "user" && message["timestamp"] === at;
}
