import { type ReadonlySignal, signal } from "@preact/signals";
import { done, type Outcome } from "./outcome.ts";
import { oneLine } from "./pi-values.ts";
import { formatOf } from "./pictures.ts";

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

/** A longer text is a piece, in UTF-16 units. */
const fieldChars = 50_000;
/** All texts and images of a draft as they are sent. The daemon takes a little more in one message. */
const maxBytes = 15 * 1_024 * 1_024;
const maxImages = 64;
const previewChars = 80;

interface Image extends DraftImage {
  /** Base64. */
  readonly data: string;
}

interface Piece extends DraftPiece {
  readonly text: string;
}

/** What a draft sends. */
export interface DraftContent {
  readonly text: string;
  readonly images: readonly { readonly type: "image"; readonly data: string; readonly mimeType: string }[];
}

export class Draft implements DraftView {
  readonly #text = signal("");
  readonly #images = signal<readonly Image[]>([]);
  readonly #pieces = signal<readonly Piece[]>([]);
  readonly #problem = signal<string | undefined>(undefined);
  /** The id that the prompt gets, so that it is known whether the daemon has it. It changes with the content. */
  #promptId = crypto.randomUUID();
  #lastId = 0;

  get text(): ReadonlySignal<string> {
    return this.#text;
  }

  get images(): ReadonlySignal<readonly DraftImage[]> {
    return this.#images;
  }

  get pieces(): ReadonlySignal<readonly DraftPiece[]> {
    return this.#pieces;
  }

  get problem(): ReadonlySignal<string | undefined> {
    return this.#problem;
  }

  get promptId(): string {
    return this.#promptId;
  }

  get content(): DraftContent {
    const text = [...this.#pieces.value.map((piece) => piece.text), this.#text.value].filter((part) => part !== "");
    const images = this.#images.value.map(({ data, mimeType }) => ({ type: "image" as const, data, mimeType }));
    return { text: text.join("\n\n"), images };
  }

  /** The words of a problem with what {@link content} has. Undefined: it can be sent. */
  get refusal(): string | undefined {
    const { text, images } = this.content;
    if (text.trim() === "" && images.length === 0) return "There is nothing to send.";
    const bytes = sizeOf(text) + images.reduce((sum, { data }) => sum + data.length, 0);
    const mebibytes = (bytes / 1_048_576).toFixed(1);
    return bytes > maxBytes ? `The message has ${mebibytes} MiB, and 15 MiB is the limit.` : undefined;
  }

  write(text: string): void {
    if (text.length > fieldChars) {
      this.#addPiece(text);
      this.#text.value = "";
    } else this.#text.value = text;
    this.#changed();
  }

  paste(text: string): boolean {
    if (text.length + this.#text.value.length <= fieldChars) return false;
    this.#addPiece(text);
    this.#changed();
    return true;
  }

  async addImages(files: readonly Blob[]): Promise<Outcome> {
    for (const file of files) {
      const outcome = await this.#addImage(file);
      if (outcome.kind === "refused") {
        this.#problem.value = outcome.words;
        return outcome;
      }
    }
    return done;
  }

  removeImage(id: string): void {
    const image = this.#images.value.find((each) => each.id === id);
    if (image !== undefined) URL.revokeObjectURL(image.url);
    this.#images.value = this.#images.value.filter((each) => each.id !== id);
    this.#changed();
  }

  removePiece(id: string): void {
    this.#pieces.value = this.#pieces.value.filter((each) => each.id !== id);
    this.#changed();
  }

  /** Says why it was not sent. */
  fail(words: string): void {
    this.#problem.value = words;
  }

  /** Empties it after it was sent. */
  clear(): void {
    for (const { url } of this.#images.value) URL.revokeObjectURL(url);
    this.#text.value = "";
    this.#images.value = [];
    this.#pieces.value = [];
    this.#changed();
  }

  /** Puts a text that was taken back before what was written since. */
  giveBack(text: string): void {
    const both = this.#text.value === "" ? text : `${text}\n\n${this.#text.value}`;
    this.write(both);
  }

  #changed(): void {
    this.#promptId = crypto.randomUUID();
    this.#problem.value = undefined;
  }

  #addPiece(text: string): void {
    this.#lastId += 1;
    const piece: Piece = {
      id: `piece-${this.#lastId}`,
      chars: text.length,
      preview: oneLine(text.slice(0, 1_000), previewChars),
      text,
    };
    this.#pieces.value = [...this.#pieces.value, piece];
  }

  async #addImage(file: Blob): Promise<Outcome> {
    const name = file instanceof File ? file.name : "image";
    if (this.#images.value.length >= maxImages) return refused(`${maxImages} images are the limit.`);
    if (file.size > maxBytes / 2) return refused(`“${oneLine(name, 80)}” is too large: 7 MiB is the limit.`);
    const binary = latin1(new Uint8Array(await file.arrayBuffer()));
    const mimeType = formatOf(binary);
    if (mimeType === undefined) return refused(`“${oneLine(name, 80)}” is not a PNG, JPEG, GIF or WebP image.`);
    this.#lastId += 1;
    const url = URL.createObjectURL(file.slice(0, file.size, mimeType));
    const image: Image = { id: `image-${this.#lastId}`, name, mimeType, url, data: btoa(binary) };
    this.#images.value = [...this.#images.value, image];
    this.#changed();
    return done;
  }
}

/** The drafts of all sessions. */
export class Drafts {
  readonly #drafts = new Map<string, Draft>();

  for(sessionId: string): Draft {
    const known = this.#drafts.get(sessionId);
    if (known !== undefined) return known;
    const draft = new Draft();
    this.#drafts.set(sessionId, draft);
    return draft;
  }
}

function refused(words: string): Outcome {
  return { kind: "refused", words };
}

function sizeOf(text: string): number {
  return new Blob([JSON.stringify(text)]).size;
}

function latin1(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 8_192) text += String.fromCharCode(...bytes.subarray(at, at + 8_192));
  return text;
}
