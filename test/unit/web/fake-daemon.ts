import type { ConnectionEvent, Delivery, MethodName, Params, Result, SessionInfo } from "../../../client/browser.ts";
import { WireError } from "../../../client/browser.ts";
import type { NotificationParams } from "../../../protocol/notifications.ts";
import type { ConnectedDaemon } from "../../../web/state/app.ts";
import type { FeedGap, FeedListener, SessionNotification } from "../../../web/state/daemon.ts";

type Handler = (params: never, signal: AbortSignal | undefined) => unknown;

interface Subscription {
  readonly sessionId: string;
  readonly listener: FeedListener;
  readonly after: number | undefined;
}

const empty: Readonly<Partial<Record<MethodName, Handler>>> = {
  "daemon/info": () => ({}),
  "session/list": () => ({ sessions: [] }),
  "dialog/list": () => ({ dialogs: [] }),
  "delivery/list": () => ({ deliveries: [] }),
  "prompt/list": () => ({ prompts: [] }),
  "session/getQueue": () => ({ steering: [], followUp: [] }),
  "session/getCommands": () => ({ commands: [] }),
  "session/getThinkingLevels": () => ({ levels: [] }),
  "transcript/page": () => ({ entries: [], leafId: null, cursor: 0, epoch: "a" }),
  "transcript/outline": () => ({ entries: [], leafId: null }),
  "request/list": () => ({ requests: [], isWhole: true }),
};

/** A daemon that answers what a test says, and notes what it was asked. */
export class FakeDaemon implements ConnectedDaemon {
  readonly id = "this-page";
  readonly calls: { readonly method: MethodName; readonly params: unknown }[] = [];
  readonly subscriptions: Subscription[] = [];
  /** What the page said about answering questions. */
  readonly answers: boolean[] = [];
  isClosed = false;
  readonly #handlers = new Map<MethodName, Handler>(Object.entries(empty) as [MethodName, Handler][]);
  readonly #connection = new Set<(event: ConnectionEvent) => void>();
  readonly #sessions = new Set<(changed: NotificationParams<"daemon/sessionChanged">) => void>();
  readonly #dialogs = new Set<(changed: NotificationParams<"daemon/dialogChanged">) => void>();
  readonly #deliveries = new Set<(updated: NotificationParams<"daemon/deliveryUpdated">) => void>();

  on<M extends MethodName>(
    method: M,
    handler: (params: Params<M>, signal: AbortSignal | undefined) => Result<M> | Promise<Result<M>>,
  ): void {
    this.#handlers.set(method, handler as Handler);
  }

  /** The same for an answer of which a test gives only the fields that matter. */
  answer(method: MethodName, result: unknown): void {
    this.#handlers.set(method, () => result);
  }

  async call<M extends MethodName>(
    method: M,
    params: Params<M>,
    options: { readonly signal?: AbortSignal } = {},
  ): Promise<Result<M>> {
    this.calls.push({ method, params });
    const handler = this.#handlers.get(method);
    if (handler === undefined) throw new WireError("method_not_found", `The test has no answer to ${method}.`);
    const { signal } = options;
    signal?.throwIfAborted();
    const aborted = new Promise<never>((_, reject) => signal?.addEventListener("abort", () => reject(signal.reason)));
    return (await Promise.race([handler(params as never, signal), aborted])) as Result<M>;
  }

  /** The methods that were called, each once. */
  get methods(): readonly MethodName[] {
    return [...new Set(this.calls.map(({ method }) => method))];
  }

  session(sessionId: string): { listen(listener: FeedListener, options?: { readonly after?: number }): () => void } {
    return {
      listen: (listener, { after } = {}) => {
        const subscription: Subscription = { sessionId, listener, after };
        this.subscriptions.push(subscription);
        return () => void this.subscriptions.splice(this.subscriptions.indexOf(subscription), 1);
      },
    };
  }

  onConnection(listener: (event: ConnectionEvent) => void): () => void {
    this.#connection.add(listener);
    return () => void this.#connection.delete(listener);
  }

  async onSessionChanged(
    listener: (changed: NotificationParams<"daemon/sessionChanged">) => void,
  ): Promise<() => void> {
    this.#sessions.add(listener);
    return () => void this.#sessions.delete(listener);
  }

  async onDeliveryUpdated(
    listener: (updated: NotificationParams<"daemon/deliveryUpdated">) => void,
  ): Promise<() => void> {
    this.#deliveries.add(listener);
    return () => void this.#deliveries.delete(listener);
  }

  async onDialogChanged(listener: (changed: NotificationParams<"daemon/dialogChanged">) => void): Promise<() => void> {
    this.#dialogs.add(listener);
    return () => void this.#dialogs.delete(listener);
  }

  async setAnswersDialogs(answers: boolean): Promise<void> {
    this.answers.push(answers);
  }

  async close(): Promise<void> {
    this.isClosed = true;
  }

  /** Sends a notification to the readers of its session. */
  notify(notification: SessionNotification): void {
    for (const { sessionId, listener } of [...this.subscriptions])
      if (sessionId === notification.params.sessionId) listener.receive(notification, "");
  }

  /** A step of a request to the provider. */
  request(notification: Parameters<NonNullable<FeedListener["request"]>>[0]): void {
    for (const { sessionId, listener } of [...this.subscriptions])
      if (sessionId === notification.params.sessionId) listener.request?.(notification, 0);
  }

  gap(sessionId: string, gap: FeedGap): void {
    for (const subscription of [...this.subscriptions])
      if (subscription.sessionId === sessionId) subscription.listener.gap(gap);
  }

  connection(event: ConnectionEvent): void {
    for (const listener of [...this.#connection]) listener(event);
  }

  changeSession(session: SessionInfo): void {
    for (const listener of [...this.#sessions]) listener({ sessionId: session.sessionId, change: "changed", session });
  }

  removeSession(sessionId: string): void {
    for (const listener of [...this.#sessions]) listener({ sessionId, change: "closed" });
  }

  /** How many follow the deliveries of all sessions. */
  get deliveryListeners(): number {
    return this.#deliveries.size;
  }

  updateDelivery(delivery: Delivery): void {
    for (const listener of [...this.#deliveries]) listener({ sessionId: delivery.sessionId, delivery });
  }

  changeDialog(changed: NotificationParams<"daemon/dialogChanged">): void {
    for (const listener of [...this.#dialogs]) listener(changed);
  }
}

/** A session as the daemon lists it. */
export function sessionInfo(sessionId: string, fields: Partial<SessionInfo> = {}): SessionInfo {
  return {
    sessionId,
    state: "idle",
    cwd: `/project/${sessionId}`,
    file: `/sessions/${sessionId}.jsonl`,
    generation: 1,
    projectTrust: "not_approved",
    cursor: 0,
    epoch: "a",
    pendingDeliveries: 0,
    pendingDialogs: [],
    lostPrompts: [],
    idleAfterMs: 0,
    createdAt: 1,
    updatedAt: 1,
    ...fields,
  };
}

/** Lets promises that are settled call those who wait for them. */
export function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
