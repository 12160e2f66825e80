import type { NotificationParams } from "../../protocol/notifications.ts";
import type { SessionInfo } from "../../protocol/session.ts";
import type { Covers, SessionScope } from "../core/session-scope.ts";
import { unnumberedFrame } from "../frames/frame.ts";
import type { Subscriber } from "../log/subscription.ts";

type Change = NotificationParams<"daemon/sessionChanged">;

interface Watcher {
  readonly subscriber: Subscriber;
  readonly onGone: () => void;
  readonly covers: Covers | undefined;
}

/** Changes of a session within this time are sent as one. */
const tellEveryMs = 50;

/**
 * Notifies clients that keep a list of all sessions. Simultaneous changes of a session are one notification with its
 * final state, so that a list is cheap even for busy sessions.
 */
export class SessionWatch {
  readonly #subscribers = new Map<string, Watcher>();
  readonly #changes = new Map<string, { readonly change: Change["change"]; readonly scope: SessionScope }>();
  readonly #info: (sessionId: string) => SessionInfo | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** `info` returns an open session's current state. */
  constructor(info: (sessionId: string) => SessionInfo | undefined) {
    this.#info = info;
  }

  /** `covers`: the visible sessions. Default: all. */
  add(subscriber: Subscriber, covers?: Covers): void {
    if (subscriber.gone.aborted || this.#subscribers.has(subscriber.id)) return;
    const onGone = (): void => void this.remove(subscriber.id);
    subscriber.gone.addEventListener("abort", onGone, { once: true });
    this.#subscribers.set(subscriber.id, { subscriber, onGone, covers });
  }

  /** Returns whether there was a subscription. */
  remove(subscriberId: string): boolean {
    const found = this.#subscribers.get(subscriberId);
    found?.subscriber.gone.removeEventListener("abort", found.onGone);
    return this.#subscribers.delete(subscriberId);
  }

  note(scope: SessionScope & { readonly sessionId: string }, change: Change["change"]): void {
    if (this.#subscribers.size === 0) return;
    const { sessionId } = scope;
    if (change !== "changed" || !this.#changes.has(sessionId)) this.#changes.set(sessionId, { change, scope });
    this.#timer ??= setTimeout(() => this.#tell(), tellEveryMs).unref();
  }

  close(): void {
    clearTimeout(this.#timer);
  }

  #tell(): void {
    this.#timer = undefined;
    for (const [sessionId, { change, scope }] of this.#changes) {
      const session = this.#info(sessionId);
      const params: Change = { sessionId, change, ...(session === undefined ? {} : { session }) };
      const bytes = Buffer.from(JSON.stringify({ jsonrpc: "2.0", method: "daemon/sessionChanged", params }));
      const frame = unnumberedFrame(bytes, sessionId);
      for (const { subscriber, covers } of this.#subscribers.values()) {
        if (covers?.(scope) !== false) subscriber.send(frame);
      }
    }
    this.#changes.clear();
  }
}
