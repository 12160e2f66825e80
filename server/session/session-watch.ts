import type { NotificationParams } from "../../protocol/notifications.ts";
import type { SessionInfo } from "../../protocol/session.ts";
import { unnumberedFrame } from "../frames/frame.ts";
import type { Subscriber } from "./subscription.ts";

type Change = NotificationParams<"daemon/sessionChanged">;

/** Changes of one session that come closer together than this are told as one. */
const tellEveryMs = 50;

/**
 * Tells those who keep a list of all sessions of what becomes of them. What one session goes through at once is one
 * notification with how it is then, so that a list costs little however busy its sessions are.
 */
export class SessionWatch {
  readonly #subscribers = new Map<string, { readonly subscriber: Subscriber; readonly onGone: () => void }>();
  readonly #changes = new Map<string, Change["change"]>();
  readonly #info: (sessionId: string) => SessionInfo | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** `info` gives a session as it is now, if it is not closed. */
  constructor(info: (sessionId: string) => SessionInfo | undefined) {
    this.#info = info;
  }

  add(subscriber: Subscriber): void {
    if (subscriber.gone.aborted || this.#subscribers.has(subscriber.id)) return;
    const onGone = (): void => void this.remove(subscriber.id);
    subscriber.gone.addEventListener("abort", onGone, { once: true });
    this.#subscribers.set(subscriber.id, { subscriber, onGone });
  }

  /** Gives whether there was one to remove. */
  remove(subscriberId: string): boolean {
    const found = this.#subscribers.get(subscriberId);
    found?.subscriber.gone.removeEventListener("abort", found.onGone);
    return this.#subscribers.delete(subscriberId);
  }

  note(sessionId: string, change: Change["change"]): void {
    if (this.#subscribers.size === 0) return;
    if (change !== "changed" || !this.#changes.has(sessionId)) this.#changes.set(sessionId, change);
    this.#timer ??= setTimeout(() => this.#tell(), tellEveryMs).unref();
  }

  close(): void {
    clearTimeout(this.#timer);
  }

  #tell(): void {
    this.#timer = undefined;
    for (const [sessionId, change] of this.#changes) {
      const session = this.#info(sessionId);
      const params: Change = { sessionId, change, ...(session === undefined ? {} : { session }) };
      const bytes = Buffer.from(JSON.stringify({ jsonrpc: "2.0", method: "daemon/sessionChanged", params }));
      const frame = unnumberedFrame(bytes, sessionId);
      for (const { subscriber } of this.#subscribers.values()) subscriber.send(frame);
    }
    this.#changes.clear();
  }
}
