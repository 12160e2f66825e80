import type { ReadonlySignal } from "@preact/signals";
import type { Who } from "./items.ts";
import type { Outcome } from "./outcome.ts";

export interface DraftImage {
  readonly id: string;
  /** The file's name: foreign text. */
  readonly name: string;
  readonly mimeType: string;
  /** A `blob:` of this page, until the image is removed or sent. */
  readonly url: string;
}

/** A long text that was pasted. It stays out of the field, which a text of millions of characters would hang. */
export interface DraftPiece {
  readonly id: string;
  readonly chars: number;
  /** Its first words. */
  readonly preview: string;
}

/** What a person has written for one session and not sent yet. It stays when another session is shown. */
export interface DraftView {
  readonly text: ReadonlySignal<string>;
  readonly images: ReadonlySignal<readonly DraftImage[]>;
  readonly pieces: ReadonlySignal<readonly DraftPiece[]>;
  /** Why something was not taken, or not sent: the text stays and needs a new press. */
  readonly problem: ReadonlySignal<string | undefined>;
  /** Sets the field's text. What is too long for the field becomes a piece, and the field is empty then. */
  write(text: string): void;
  /** Whether a pasted text is too long for the field; then it has become a piece. */
  paste(text: string): boolean;
  addImages(files: readonly Blob[]): Promise<Outcome>;
  removeImage(id: string): void;
  removePiece(id: string): void;
}

/** `steer`: into this run. `followUp`: at its end. Without a run both are `prompt`. */
export type Way = "prompt" | "steer" | "followUp";

/** Something that waits to enter the conversation. Its words are foreign text. */
export interface Waiting {
  readonly id: string;
  readonly kind: "prompt" | "push";
  /** `nextTurn`: goes along with the next prompt. */
  readonly how: "steer" | "followUp" | "nextTurn";
  readonly words: string;
  readonly who: Who;
  /** Takes it back. A prompt of this page comes back into the draft. Undefined: it has no way back. */
  readonly takeBack?: () => Promise<Outcome>;
}

/** Whether one can write here, and if not, why: who controls the session, a token that only observes, a lost connection. */
export type Permission = { readonly kind: "yes" } | { readonly kind: "no"; readonly words: string };

export interface Composer {
  readonly draft: DraftView;
  readonly permission: ReadonlySignal<Permission>;
  readonly isRunning: ReadonlySignal<boolean>;
  readonly isSending: ReadonlySignal<boolean>;
  /** What waits, in order. */
  readonly waiting: ReadonlySignal<readonly Waiting[]>;
  /** Sends the draft and empties it. If it is refused or its outcome is unknown, the draft stays and `problem` says why. */
  send(way: Way): Promise<Outcome>;
  /** Sends pi a prompt again that was lost with its process. */
  resend(promptId: string): Promise<Outcome>;
  /** Ends the run. Resolves with what it did to what waits. */
  stop(): Promise<Outcome<string>>;
}
