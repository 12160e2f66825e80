import { v7 as uuidv7 } from "uuid";
import type { ParamsFinding } from "../protocol/errors.ts";
import type { Gap } from "../protocol/event.ts";
import type { DaemonEvent, FeedGap } from "../protocol/feed.ts";
import type { MethodName, Params, Result } from "../protocol/methods.ts";
import type { NotificationName, NotificationParams } from "../protocol/notifications.ts";
import { isRecord } from "../protocol/objects.ts";
import type { ConnectionEnd } from "./channel.ts";
import { Connection, type ConnectionEvent, type Dial } from "./connection.ts";
import { DaemonFeed } from "./daemon-feed.ts";
import { DaemonWatch, type WatchName } from "./daemon-watch.ts";
import { type Diagnostic, guarded, type OnDiagnostic } from "./diagnostic.ts";
import { KnownDeliveries } from "./known-delivery.ts";
import { InvalidParamsError, ProtocolViolationError, UnknownMethodError } from "./local-errors.ts";
import type { ReconnectPolicy } from "./reconnect-policy.ts";
import { isKnownMethod, repeatable } from "./repeatable.ts";
import {
  type FeedListener,
  type FeedStart,
  type RequestNotification,
  SessionFeed,
  type SessionNotification,
  sessionNotificationNames,
} from "./session-feed.ts";

/** Optional checks against the wire's schemas. They are passed in so that a browser does not load a schema compiler. */
export interface Checks {
  readonly params?: (method: MethodName, value: unknown) => readonly ParamsFinding[];
  readonly result?: (method: MethodName, value: unknown) => readonly ParamsFinding[];
  readonly notification?: (name: NotificationName, value: unknown) => readonly ParamsFinding[];
}

export interface PeerOptions {
  /** The client's name, for people. */
  readonly name?: string | undefined;
  readonly dial: Dial;
  /** The only process to use, as `daemon/info` names it. Default: any. */
  readonly instance?: string | undefined;
  /** Limit of each attempt to connect. */
  readonly connectTimeoutMs: number;
  /** Undefined: a lost connection ends the client. */
  readonly reconnect: ReconnectPolicy | undefined;
  readonly checks?: Checks;
  /** Called with unexpected things that were ignored. Default: they are dropped. */
  readonly onDiagnostic?: OnDiagnostic | undefined;
}

export interface CallOptions {
  /** Ends the wait for the answer by rejecting with the signal's reason. The call may have taken effect. */
  readonly signal?: AbortSignal;
  /**
   * Called when the answer arrives, before any notification that arrived after it, with the unchecked result; undefined:
   * the answer is an error. The promise settles later; it alone says that a call failed without an answer. Must not throw.
   */
  readonly onAnswer?: (result: unknown) => void;
}

const notificationNames: ReadonlySet<string> = new Set<NotificationName>([
  ...sessionNotificationNames,
  "daemon/sessionChanged",
  "daemon/deliveryUpdated",
  "daemon/dialogChanged",
  "daemon/event",
  "daemon/gap",
  "session/gap",
  "session/stderr",
  "session/formerText",
  "provider/requestPrepared",
  "provider/requestDelivered",
  "provider/requestFailed",
]);

/** The daemon as the client's objects see it: typed calls, and notifications for their readers. */
export class DaemonPeer {
  readonly clientId = uuidv7();
  readonly deliveries = new KnownDeliveries();
  readonly diagnose: (diagnostic: Diagnostic) => void;
  readonly #checks: Checks;
  readonly #repeats: boolean;
  readonly #feeds = new Map<string, SessionFeed>();
  /** The events of all sessions. */
  readonly daemonFeed = new DaemonFeed(this);
  /** What is told of all sessions otherwise. */
  readonly watch = new DaemonWatch(this);
  readonly #listeners = new Set<(event: ConnectionEvent) => void>();
  #connection!: Connection;

  private constructor({ checks = {}, reconnect, onDiagnostic }: PeerOptions) {
    this.#checks = checks;
    this.#repeats = reconnect !== undefined;
    this.diagnose = guarded(onDiagnostic);
  }

  /** Connects in one attempt. `signal` cancels the attempt and does not affect an open connection. */
  static async open(options: PeerOptions, signal?: AbortSignal): Promise<DaemonPeer> {
    const peer = new DaemonPeer(options);
    await peer.#connect(options, signal);
    return peer;
  }

  get closed(): Promise<ConnectionEnd> {
    return this.#connection.closed;
  }

  close(): Promise<ConnectionEnd> {
    return this.#connection.close();
  }

  /** Calls `listener` when the connection changes, until the returned function is called. */
  onConnection(listener: (event: ConnectionEvent) => void): () => void {
    // The same function can be registered twice.
    const own = (event: ConnectionEvent): void => listener(event);
    this.#listeners.add(own);
    return () => void this.#listeners.delete(own);
  }

  /** Calls a listener of the user; an error that it throws becomes a diagnostic. */
  shield(listener: () => void): void {
    try {
      listener();
    } catch (error) {
      this.diagnose({ kind: "listener_failed", error });
    }
  }

  async call<M extends MethodName>(method: M, params: Params<M>, options: CallOptions = {}): Promise<Result<M>> {
    if (!isKnownMethod(method)) throw new UnknownMethodError(String(method));
    const findings = this.#checks.params?.(method, params) ?? [];
    if (findings.length > 0) throw new InvalidParamsError(method, findings);
    const call = this.#repeats ? repeatable(method, params, uuidv7) : ({ params, repeat: "never" } as const);
    const { signal, onAnswer } = options;
    const result = await this.#connection.request(method, call.params, { signal, repeat: call.repeat, onAnswer });
    const violations = this.#violations(method, result);
    if (violations.length > 0) throw new ProtocolViolationError(`result of ${method}`, violations);
    return result as Result<M>;
  }

  #violations(method: MethodName, result: unknown): readonly ParamsFinding[] {
    return this.#checks.result?.(method, result) ?? [];
  }

  /** Adds a reader of a session's notifications, as `SessionFeed.join` does. */
  joinFeed(sessionId: string, listener: FeedListener, after?: number, epoch?: string): void {
    let feed = this.#feeds.get(sessionId);
    if (feed === undefined) {
      feed = this.#createFeed(sessionId);
      this.#feeds.set(sessionId, feed);
    }
    feed.join(listener, after, epoch);
  }

  leaveFeed(sessionId: string, listener: FeedListener): void {
    this.#feeds.get(sessionId)?.leave(listener);
  }

  /** A call of this client closed the session. */
  closeFeed(sessionId: string): void {
    this.#feeds.get(sessionId)?.closeSession();
  }

  async #connect(
    { dial, instance, connectTimeoutMs, reconnect, name }: PeerOptions,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    this.#connection = await Connection.open(
      {
        client: { id: this.clientId, ...(name === undefined ? {} : { name }) },
        dial,
        instance,
        connectTimeoutMs,
        reconnect,
        onNotification: (method, params, frame) => this.#notify(method, params, frame),
        onDiagnostic: this.diagnose,
        onDown: () => {
          for (const feed of this.#feeds.values()) feed.suspend();
          this.daemonFeed.suspend();
        },
        onUp: () => {
          for (const feed of [...this.#feeds.values()]) feed.resume();
          this.watch.resume();
          this.daemonFeed.resume();
        },
        onOver: (end, error) => this.#endFeeds(end, error),
        onEvent: (event) => {
          for (const listener of [...this.#listeners]) this.shield(() => listener(event));
        },
      },
      signal,
    );
  }

  #createFeed(sessionId: string): SessionFeed {
    return new SessionFeed({
      subscribe: (place, provider, dialogs, more, onAnswer) => {
        const params = {
          ...more,
          sessionId,
          ...(place === undefined ? {} : { after: place.after }),
          ...(place?.epoch === undefined ? {} : { epoch: place.epoch }),
          ...(provider === undefined ? {} : { provider }),
          ...(dialogs === undefined ? {} : { dialogs }),
        };
        const isStart = (result: unknown): result is FeedStart =>
          isRecord(result) && this.#violations("session/subscribe", result).length === 0;
        return this.call("session/subscribe", params, {
          onAnswer: (result) => onAnswer?.(isStart(result) ? result : undefined),
        });
      },
      unsubscribe: () => void this.call("session/unsubscribe", { sessionId }).catch(() => {}),
      onIdle: () => this.#feeds.delete(sessionId),
    });
  }

  #notify(method: string, params: unknown, frame: string): void {
    if (!notificationNames.has(method)) {
      this.#skipUnknown(params);
      this.diagnose({ kind: "unknown_notification", method });
      return;
    }
    const violations = this.#checks.notification?.(method as NotificationName, params) ?? [];
    if (violations.length > 0) {
      this.#connection.fail(new ProtocolViolationError(`notification ${method}`, violations));
      return;
    }
    if (method.startsWith("provider/")) {
      this.#notifyRequest({ name: method, params } as RequestNotification, frame.length);
      return;
    }
    if (
      method === "daemon/sessionChanged" ||
      method === "daemon/deliveryUpdated" ||
      method === "daemon/dialogChanged"
    ) {
      this.#notifyWatch(method, params);
      return;
    }
    if (method === "daemon/event" || method === "daemon/gap") {
      this.#notifyFeed(method, params);
      return;
    }
    if (method === "session/gap") {
      this.#notifyGap(params);
      return;
    }
    if (method === "session/stderr") {
      this.#notifyStderr(params);
      return;
    }
    if (method === "session/formerText") {
      this.#notifyFormerText(params);
      return;
    }
    const notification = { name: method, params } as SessionNotification;
    if (!isWellFormed(notification)) {
      this.diagnose({ kind: "malformed_notification", method, params });
      return;
    }
    if (notification.name === "delivery/updated") this.deliveries.learn(notification.params.delivery);
    this.#feeds.get(notification.params.sessionId)?.receive(notification, frame);
  }

  #notifyWatch(method: WatchName, params: unknown): void {
    if (!isRecord(params) || typeof params["sessionId"] !== "string") {
      this.diagnose({ kind: "malformed_notification", method, params });
      return;
    }
    const { delivery } = params as Partial<NotificationParams<"daemon/deliveryUpdated">>;
    if (method === "daemon/deliveryUpdated" && isRecord(delivery)) this.deliveries.learn(delivery);
    this.watch.receive(method, params as NotificationParams<WatchName>);
  }

  #notifyFeed(method: "daemon/event" | "daemon/gap", params: unknown): void {
    const given = (isRecord(params) ? params : {}) as Readonly<Record<string, unknown>>;
    const isNumbered = (names: readonly string[]): boolean => names.every((name) => typeof given[name] === "number");
    if (method === "daemon/event" && isNumbered(["seq", "after"])) this.daemonFeed.receive(params as DaemonEvent);
    else if (method === "daemon/gap" && isNumbered(["from", "to"])) this.daemonFeed.receiveGap(params as FeedGap);
    else this.diagnose({ kind: "malformed_notification", method, params });
  }

  #notifyGap(params: unknown): void {
    const { sessionId, ...gap } = (isRecord(params) ? params : {}) as Partial<NotificationParams<"session/gap">>;
    if (typeof sessionId === "string" && typeof gap.from === "number" && typeof gap.to === "number") {
      this.#feeds.get(sessionId)?.receiveGap(gap as Gap);
    } else this.diagnose({ kind: "malformed_notification", method: "session/gap", params });
  }

  #notifyStderr(params: unknown): void {
    if (isRecord(params) && typeof params["sessionId"] === "string" && typeof params["text"] === "string") {
      this.#feeds.get(params["sessionId"])?.receiveStderr(params as NotificationParams<"session/stderr">);
    } else this.diagnose({ kind: "malformed_notification", method: "session/stderr", params });
  }

  #notifyFormerText(params: unknown): void {
    const given = (isRecord(params) ? params : {}) as Partial<NotificationParams<"session/formerText">>;
    const { sessionId, toolCallId, path, text } = given;
    const isText = typeof text === "string" || text === null;
    if (typeof sessionId === "string" && typeof toolCallId === "string" && typeof path === "string" && isText) {
      this.#feeds.get(sessionId)?.receiveFormerText(given as NotificationParams<"session/formerText">);
    } else this.diagnose({ kind: "malformed_notification", method: "session/formerText", params });
  }

  /** A newer daemon's notification may have numbers in a session's log. */
  #skipUnknown(params: unknown): void {
    const { sessionId, seq, firstSeq } = (isRecord(params) ? params : {}) as Readonly<Record<string, unknown>>;
    if (typeof sessionId !== "string" || typeof seq !== "number") return;
    this.#feeds.get(sessionId)?.skip(typeof firstSeq === "number" ? firstSeq : seq, seq);
  }

  #notifyRequest(notification: RequestNotification, frameLength: number): void {
    const { name: method, params } = notification;
    if (!isRecord(params) || typeof params.sessionId !== "string" || typeof params.requestId !== "string") {
      this.diagnose({ kind: "malformed_notification", method, params });
      return;
    }
    this.#feeds.get(params.sessionId)?.receiveRequest(notification, frameLength);
  }

  #endFeeds(end: ConnectionEnd, error: Error): void {
    const feeds = [...this.#feeds.values()];
    const how =
      end.kind === "closed" ? ({ kind: "client_closed", error } as const) : ({ kind: "failed", error } as const);
    for (const feed of feeds) feed.end(how);
    this.daemonFeed.end(how);
  }
}

/** Checks the fields that this library relies on. */
function isWellFormed({ name, params }: SessionNotification): boolean {
  if (!isRecord(params) || typeof params.sessionId !== "string" || typeof params.seq !== "number") return false;
  switch (name) {
    case "session/event":
      return isRecord(params.event) && typeof params.event.type === "string";
    case "session/updated":
      return isRecord(params.session);
    case "session/replaced":
      return typeof params.to === "string";
    case "session/navigated":
      return isLeaf(params.from) && isLeaf(params.to);
    case "session/labelled":
      return typeof params.entryId === "string";
    case "session/foreignWrite":
      return isRecord(params.write);
    case "session/controlChanged":
      return isRecord(params.control);
    case "prompt/updated":
      return isRecord(params.prompt) && typeof params.prompt.promptId === "string";
    case "run/started":
    case "run/ended":
      return typeof params.runId === "string" && Array.isArray(params.promptIds);
    case "dialog/opened":
      return isRecord(params.dialog) && typeof params.dialog.dialogId === "string";
    case "dialog/unsupported":
      return typeof params.reason === "string";
    case "dialog/updated":
    case "dialog/resolved":
      return typeof params.dialogId === "string";
    case "delivery/updated":
      return isRecord(params.delivery) && Array.isArray(params.delivery.history);
    case "pending/updated":
      return Array.isArray(params.pending);
    case "context/failed":
      return isRecord(params.error) && typeof params.error.message === "string";
    case "cache/broken":
      return typeof params.cause === "string";
    case "cost/checkpointed":
      return isRecord(params.event) && isRecord(params.detail);
    case "cost/budgetReached":
      return typeof params.level === "string";
    case "optimisation/degraded":
    case "pruning/degraded":
      return typeof params.reason === "string";
    case "pruning/changed":
      return Array.isArray(params.blocks) && Array.isArray(params.pruned);
    case "pruning/nudged":
      return typeof params.kind === "string";
  }
}

function isLeaf(value: unknown): boolean {
  return typeof value === "string" || value === null;
}
