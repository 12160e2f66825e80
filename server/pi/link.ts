import { createHash, randomUUID } from "node:crypto";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { WireError } from "../../protocol/errors.ts";
import { LINK_VERSION, MAX_INLINE_FRAME_BYTES, NO_LINK } from "../../protocol/link.ts";
import type { InwardFrame } from "../../protocol/link-inward.ts";
import type { OutwardFrame } from "../../protocol/link-outward.ts";
import { type Deferred, deferred } from "../lib/deferred.ts";
import type { Commands } from "./commands.ts";
import { parseOutwardFrame } from "./outward-frame.ts";
import type { PiResponse } from "./records.ts";

export type Hello = Extract<OutwardFrame, { kind: "hello" }>;

/** A frame without the fields that the link adds. */
export type FrameBody = InwardFrame extends infer F
  ? F extends { kind: "file" }
    ? never
    : F extends unknown
      ? Omit<F, "rid">
      : never
  : never;

export interface LinkOptions {
  readonly statusKey: string;
  /** The directory for large frames (0700). */
  readonly directory: string;
  readonly commands: Commands;
  /** Receives every frame except `reply`, in the order of pi's records. */
  readonly onFrame: (frame: OutwardFrame) => void;
  /** The helper may be gone, or cannot continue. */
  readonly onDoubt: () => void;
  /** Where a former daemon left the link of a child. Default: the helper sends its hello. */
  readonly left?: LeftLink | undefined;
}

/** The link of a child, for the next daemon. */
export interface LeftLink {
  readonly command: string;
  /** The session inside the child. */
  readonly sessionId: string | undefined;
  readonly bodyPrefix: string;
  /** The version of its frames. */
  readonly version: number;
}

/** Whether the daemon can go on with a link of this version. */
export function isSpoken(version: number): boolean {
  return version === LINK_VERSION || (version === LINK_VERSION - 1 && version !== NO_LINK);
}

export interface LinkSendOptions<T> {
  /** Called at the reply's position in the order of pi's records. */
  readonly onReply?: (reply: T) => void;
}

interface Waiting {
  readonly answer: Deferred<unknown>;
  readonly onReply: ((reply: unknown) => void) | undefined;
}

/** The control channel to the helper extension inside one child. */
export class Link {
  /** The beginning of the paths at which the helper leaves bodies of requests. */
  readonly bodyPrefix: string;
  readonly #options: LinkOptions;
  readonly #waiting = new Map<string, Waiting>();
  readonly #hello = deferred<Hello>();
  #command: string | undefined;
  /** The session inside the child. */
  #sessionId: string | undefined;
  readonly #version: number;

  constructor(options: LinkOptions) {
    this.#options = options;
    this.bodyPrefix = options.left?.bodyPrefix ?? join(options.directory, `body-${randomUUID()}-`);
    this.#command = options.left?.command;
    this.#sessionId = options.left?.sessionId;
    this.#version = options.left?.version ?? LINK_VERSION;
  }

  /** The helper's first `hello`. */
  get hello(): Promise<Hello> {
    return this.#hello.promise;
  }

  /** Name of the helper's command after its hello. No client may see it or send text that begins with it. */
  get command(): string | undefined {
    return this.#command;
  }

  /** For the next daemon. Undefined before a hello. */
  get left(): LeftLink | undefined {
    const [command, sessionId, version, { bodyPrefix }] = [this.#command, this.#sessionId, this.#version, this];
    return command === undefined ? undefined : { command, sessionId, bodyPrefix, version };
  }

  /** Handles the text of a status record. Returns whether it was a frame. */
  receive(statusKey: string, text: string): boolean {
    if (statusKey !== this.#options.statusKey) return false;
    // The same words may mean something else.
    if (!isSpoken(this.#version)) return true;
    // Other extensions in the same pi can write here: only a complete, valid frame is accepted.
    const frame = parseOutwardFrame(text);
    if (frame !== undefined) this.#dispatch(frame);
    return true;
  }

  /**
   * Sends a frame and returns the data of the helper's reply. Only the reply acknowledges it, not pi's response to
   * the record with the frame: pi reports success even if the command's handler threw.
   */
  async send<T>(body: FrameBody, options: LinkSendOptions<T> = {}): Promise<T> {
    return await this.#post((head) => Buffer.from(JSON.stringify({ ...body, ...head })), options);
  }

  /** Sends the frame `context`; it is already JSON, and may be large. */
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
    if (command === undefined) throw new WireError("link_failed", "The helper extension has not sent its hello.");
    if (!isSpoken(this.#version)) throw new WireError("link_failed", otherVersion(this.#version));
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

  /** Rejects all pending sends. */
  end(error: WireError): void {
    this.#hello.reject(error);
    for (const { answer } of this.#waiting.values()) answer.reject(error);
    this.#waiting.clear();
  }

  /** pi's response follows everything that the handler emitted: a reply that is missing now never comes. */
  #responded(rid: string, response: PiResponse): void {
    const waiting = this.#waiting.get(rid);
    if (waiting === undefined) return;
    const why = response.success ? "the command ended without a reply" : (response.error ?? "pi refused the command");
    waiting.answer.reject(new WireError("link_failed", `The helper extension did not act on a frame: ${why}.`));
    this.#options.onDoubt();
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
      if (frame.link !== this.#version) {
        this.#command = undefined;
        const advice = "Is another pi-rpcd's helper among pi's extensions? Remove it from pi's settings.";
        this.#hello.reject(new WireError("link_failed", `${otherVersion(frame.link)} ${advice}`));
        this.#options.onDoubt();
        return;
      }
      this.#command = frame.command;
      this.#sessionId = frame.sessionId;
      this.#hello.resolve(frame);
    }
    this.#options.onFrame(frame);
  }
}

function otherVersion(version: number): string {
  return `The helper extension speaks version ${version} of the link, the daemon version ${LINK_VERSION}.`;
}
