import { type ReadonlySignal, signal } from "@preact/signals";
import type { Daemon, FeedListener } from "./daemon.ts";
import { done, type Outcome, outcomeOf } from "./outcome.ts";
import { isRecord, type PiValue } from "./pi-values.ts";
import { read } from "./reading.ts";

/** What a request sent to the provider. */
export interface RequestBody {
  readonly messages: readonly PiValue[] | undefined;
  /** Undefined also where the page's token has no access to payloads. */
  readonly payload: object | undefined;
  /** Something was too large for the daemon to tell. */
  readonly isCut: boolean;
}

/** Messages and payloads of a session's requests. They can have secrets, and are large: the page gets them only on request. */
export interface RequestBodies {
  /** What the page gets of each request that begins from now on, as the daemon has confirmed. */
  readonly level: ReadonlySignal<"off" | "messages" | "payload">;
  /** Of the last 5 requests with any, by their ids. */
  readonly known: ReadonlySignal<ReadonlyMap<string, RequestBody>>;
  start(): Promise<Outcome>;
  /** Also forgets them. */
  stop(): void;
}

const keptCount = 5;

export class SubscribedBodies implements RequestBodies {
  readonly level = signal<"off" | "messages" | "payload">("off");
  readonly known = signal<ReadonlyMap<string, RequestBody>>(new Map());
  readonly #options: { readonly daemon: Daemon; readonly sessionId: string };
  #leave: (() => void) | undefined;
  #isClosed = false;

  constructor(options: { readonly daemon: Daemon; readonly sessionId: string }) {
    this.#options = options;
  }

  async start(): Promise<Outcome> {
    const { daemon, sessionId } = this.#options;
    const info = await outcomeOf(() => read(daemon, "daemon/info", {}));
    if (info.kind === "refused") return info;
    if (this.#isClosed || this.#leave !== undefined) return done;
    const provider = info.value.capabilities.includes("payload") ? "payload" : "messages";
    const listener: FeedListener = {
      provider,
      begin: () => {
        this.level.value = provider;
      },
      gap: () => {},
      receive: () => {},
      request: (notification) => this.#request(notification),
      end: () => this.stop(),
    };
    this.#leave = daemon.session(sessionId).listen(listener);
    return done;
  }

  stop(): void {
    this.#leave?.();
    this.#leave = undefined;
    this.level.value = "off";
    this.known.value = new Map();
  }

  close(): void {
    this.#isClosed = true;
    this.stop();
  }

  #request({ name, params }: Parameters<NonNullable<FeedListener["request"]>>[0]): void {
    if (name !== "provider/requestPrepared") return;
    const { requestId, messages, payload, truncated } = params;
    if (messages === undefined && payload === undefined && truncated === undefined) return;
    const body: RequestBody = { messages: messages?.filter(isRecord), payload, isCut: truncated === true };
    this.known.value = new Map([...this.known.peek(), [requestId, body] as const].slice(-keptCount));
  }
}
