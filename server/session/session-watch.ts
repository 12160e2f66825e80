import type { DialogResolution } from "../../protocol/dialog.ts";
import type { NotificationName, NotificationParams } from "../../protocol/notifications.ts";
import type { SessionInfo } from "../../protocol/session.ts";
import type { Covers, SessionScope } from "../core/session-scope.ts";
import { type Frame, unnumberedFrame } from "../frames/frame.ts";
import type { Subscriber } from "../log/subscription.ts";
import type { OwedNotification } from "../store/children.ts";

type Change = NotificationParams<"daemon/sessionChanged">;

/** What a subscriber requests. An absent field stays unchanged, or is off for a new subscriber. */
export interface WatchOptions {
  /** The visible sessions. Default: all. */
  readonly covers?: Covers | undefined;
  /** Sessions that are created, changed and closed. */
  readonly sessions?: true;
  readonly deliveries?: boolean;
  readonly dialogs?: boolean;
}

interface Watcher extends WatchOptions {
  readonly subscriber: Subscriber;
  readonly onGone: () => void;
}

type Kind = "sessions" | "deliveries" | "dialogs";

/** Changes of a session within this time are sent as one. */
const tellEveryMs = 50;

/**
 * Notifies clients of all sessions, their deliveries and dialogs. Simultaneous changes of a session are one notification
 * with its final state, so that a list is cheap even for busy sessions.
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

  /** Adding a subscriber again changes the given fields only. */
  add(subscriber: Subscriber, wanted: WatchOptions = { sessions: true }): void {
    if (subscriber.gone.aborted) return;
    const known = this.#subscribers.get(subscriber.id);
    const onGone = known?.onGone ?? ((): void => void this.remove(subscriber.id));
    if (known === undefined) subscriber.gone.addEventListener("abort", onGone, { once: true });
    this.#subscribers.set(subscriber.id, { ...known, ...wanted, subscriber, onGone });
  }

  /** Returns whether there was a subscription. */
  remove(subscriberId: string): boolean {
    const found = this.#subscribers.get(subscriberId);
    found?.subscriber.gone.removeEventListener("abort", found.onGone);
    return this.#subscribers.delete(subscriberId);
  }

  note(scope: SessionScope & { readonly sessionId: string }, change: Change["change"]): void {
    if (!this.#isWatched("sessions")) return;
    const { sessionId } = scope;
    if (change !== "changed" || !this.#changes.has(sessionId)) this.#changes.set(sessionId, { change, scope });
    this.#timer ??= setTimeout(() => this.#tell(), tellEveryMs).unref();
  }

  /** A session has told its own subscribers: passes on what is about deliveries and dialogs. */
  said({ stored }: Said, { method, params }: OwedNotification): void {
    const { sessionId } = stored;
    if (method === "delivery/updated") {
      this.#send("deliveries", stored, () => frameOf("daemon/deliveryUpdated", { sessionId, ...params }));
      return;
    }
    const change = dialogChanges[method];
    if (change !== undefined) {
      this.#send("dialogs", stored, () =>
        frameOf("daemon/dialogChanged", { sessionId, change, ...dialogParams(params) }),
      );
    }
  }

  close(): void {
    clearTimeout(this.#timer);
  }

  #tell(): void {
    this.#timer = undefined;
    for (const [sessionId, { change, scope }] of this.#changes) {
      const session = this.#info(sessionId);
      const params: Change = { sessionId, change, ...(session === undefined ? {} : { session }) };
      this.#send("sessions", scope, () => frameOf("daemon/sessionChanged", params));
    }
    this.#changes.clear();
  }

  #isWatched(kind: Kind): boolean {
    for (const watcher of this.#subscribers.values()) if (watcher[kind] === true) return true;
    return false;
  }

  /** Makes one frame for all subscribers, if there are any. */
  #send(kind: Kind, scope: SessionScope, frame: () => Frame): void {
    let made: Frame | undefined;
    for (const watcher of this.#subscribers.values()) {
      if (watcher[kind] !== true || watcher.covers?.(scope) === false) continue;
      made ??= frame();
      watcher.subscriber.send(made);
    }
  }
}

/** A session that has told something. */
interface Said {
  readonly stored: SessionScope & { readonly sessionId: string };
}

type DialogChange = NotificationParams<"daemon/dialogChanged">;

const dialogChanges: Readonly<Partial<Record<NotificationName, DialogChange["change"]>>> = {
  "dialog/opened": "opened",
  "dialog/updated": "updated",
  "dialog/resolved": "resolved",
};

/** The fields of `daemon/dialogChanged`, from those of a dialog's own notifications. */
function dialogParams(params: OwedNotification["params"]): Omit<DialogChange, "sessionId" | "change"> {
  const { dialog, dialogId, openToOthersAt, how, by, client } = params as Partial<
    NotificationParams<"dialog/opened"> & NotificationParams<"dialog/updated"> & DialogResolution & DialogChange
  >;
  if (dialog !== undefined) return { dialogId: dialog.dialogId, dialog };
  const told = { dialogId: dialogId ?? "" };
  if (how === undefined || by === undefined)
    return { ...told, ...(openToOthersAt !== undefined && { openToOthersAt }) };
  return { ...told, resolution: { how, by, ...(client !== undefined && { client }), at: Date.now() } };
}

function frameOf(
  method: NotificationName,
  params: { readonly sessionId: string; readonly [name: string]: unknown },
): Frame {
  return unnumberedFrame(Buffer.from(JSON.stringify({ jsonrpc: "2.0", method, params })), params.sessionId);
}
