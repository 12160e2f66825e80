import { createHash, randomUUID } from "node:crypto";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { WireError } from "../../protocol/errors.ts";
import { type InwardFrame, LINK_VERSION, MAX_INLINE_FRAME_BYTES, type OutwardFrame } from "../../protocol/link.ts";
import { type Deferred, deferred } from "../lib/deferred.ts";
import type { Commands } from "./commands.ts";
import { parseOutwardFrame } from "./outward-frame.ts";
import type { PiResponse } from "./records.ts";

export type Hello = Extract<OutwardFrame, { kind: "hello" }>;

/** A frame without what the link adds by itself. */
export type FrameBody = InwardFrame extends infer F
  ? F extends { kind: "file" }
    ? never
    : F extends unknown
      ? Omit<F, "rid">
      : never
  : never;

export interface LinkOptions {
  readonly statusKey: string;
  /** Where large frames are put (0700). */
  readonly directory: string;
  readonly commands: Commands;
  /** Every frame but `reply`, in its place in the order of pi's records. */
  readonly onFrame: (frame: OutwardFrame) => void;
}

export interface LinkSendOptions<T> {
  /** Called in the place of the reply in the order of pi's records. */
  readonly onReply?: (reply: T) => void;
}

interface Waiting {
  readonly answer: Deferred<unknown>;
  readonly onReply: ((reply: unknown) => void) | undefined;
}

/** The control channel to the helper extension inside one child. */
export class Link {
  /** How the paths begin where the helper leaves bodies of requests. */
  readonly bodyPrefix: string;
  readonly #options: LinkOptions;
  readonly #waiting = new Map<string, Waiting>();
  readonly #hello = deferred<Hello>();
  #command: string | undefined;
  /** The session inside the child. */
  #sessionId: string | undefined;

  constructor(options: LinkOptions) {
    this.#options = options;
    this.bodyPrefix = join(options.directory, `body-${randomUUID()}-`);
  }

  /** The helper's first `hello`. */
  get hello(): Promise<Hello> {
    return this.#hello.promise;
  }

  /** Name of the helper's command once it has said hello. No client may see it or send text that begins with it. */
  get command(): string | undefined {
    return this.#command;
  }

  /** Takes the text of a status record. Returns whether it was a frame. */
  receive(statusKey: string, text: string): boolean {
    if (statusKey !== this.#options.statusKey) return false;
    let frame: unknown;
    try {
      frame = JSON.parse(text);
    } catch {
      frame = undefined;
    }
    // Whatever runs in the same pi can write here: only a whole frame is acted on.
    const checked = parseOutwardFrame(frame);
    if (checked !== undefined) this.#dispatch(checked);
    return true;
  }

  /**
   * Sends a frame and gives the data of the helper's reply. The reply is the acknowledgement, never pi's response to
   * the record that carries the frame: pi answers success even when the command's handler threw.
   */
  async send<T>(body: FrameBody, options: LinkSendOptions<T> = {}): Promise<T> {
    return await this.#post((head) => Buffer.from(JSON.stringify({ ...body, ...head })), options);
  }

  /** Sends the frame `context`; it is JSON already, and may be large. */
  async sendContext(json: Buffer): Promise<{ readonly hash: unknown }> {
    const frame = (head: object): Buffer => {
      const before = JSON.stringify({ kind: "context", ...head }).slice(0, -1);
      return Buffer.concat([Buffer.from(`${before},"context":`), json, Buffer.from("}")]);
    };
    const reply = await this.#post<{ readonly hash?: unknown } | null>(frame, {});
    return { hash: reply?.hash };
  }

  async #post<T>(frame: (head: { readonly rid: string }) => Buffer, options: LinkSendOptions<T>): Promise<T> {
    const command = this.#command;
    if (command === undefined) throw new WireError("link_failed", "The helper extension has not said hello.");
    const rid = randomUUID();
    const answer = deferred<unknown>();
    this.#waiting.set(rid, { answer, onReply: options.onReply as Waiting["onReply"] });
    let file: string | undefined;
    try {
      const session = this.#sessionId;
      const bytes = frame({ rid, ...(session === undefined ? {} : { session }) });
      let text: string;
      if (bytes.length > MAX_INLINE_FRAME_BYTES) {
        file = join(this.#options.directory, `frame-${rid}.json`);
        await writeFile(file, bytes, { mode: 0o600, flag: "wx" });
        const sha256 = createHash("sha256").update(bytes).digest("hex");
        text = JSON.stringify({ kind: "file", rid, path: file, bytes: bytes.length, sha256 } satisfies InwardFrame);
      } else text = bytes.toString("utf8");
      const onResponse = (response: PiResponse): void => this.#responded(rid, response);
      await this.#options.commands.send({ type: "prompt", message: `/${command} ${text}` }, { onResponse });
      return (await answer.promise) as T;
    } finally {
      this.#waiting.delete(rid);
      if (file !== undefined) await rm(file, { force: true });
    }
  }

  /** Rejects all that wait. */
  end(error: WireError): void {
    this.#hello.reject(error);
    for (const { answer } of this.#waiting.values()) answer.reject(error);
    this.#waiting.clear();
  }

  /** pi's response comes behind everything that the handler emitted: a reply that is not there by now never comes. */
  #responded(rid: string, response: PiResponse): void {
    const why = response.success ? "the command ended without a reply" : (response.error ?? "pi refused the command");
    this.#waiting
      .get(rid)
      ?.answer.reject(new WireError("link_failed", `The helper extension did not act on a frame: ${why}.`));
  }

  #dispatch(frame: OutwardFrame): void {
    if (frame.kind === "reply") {
      const waiting = this.#waiting.get(frame.rid);
      if (waiting === undefined) return;
      this.#waiting.delete(frame.rid);
      if (frame.ok) {
        try {
          waiting.onReply?.(frame.data);
          waiting.answer.resolve(frame.data);
        } catch (error) {
          waiting.answer.reject(error);
        }
      } else {
        waiting.answer.reject(new WireError("link_failed", `The helper extension refused a frame: ${frame.error}`));
      }
      return;
    }
    if (frame.kind === "hello") {
      if (frame.link !== LINK_VERSION) {
        this.#hello.reject(
          new WireError(
            "link_failed",
            `The helper extension speaks version ${frame.link} of the link, the daemon version ${LINK_VERSION}. Is another pi-rpcd's helper among pi's extensions? Remove it from pi's settings.`,
          ),
        );
        return;
      }
      this.#command = frame.command;
      this.#sessionId = frame.sessionId;
      this.#hello.resolve(frame);
    }
    this.#options.onFrame(frame);
  }
}
