import { once } from "node:events";
import WebSocket from "ws";
import { readDaemonFile } from "../../client/index.ts";
import type { NotificationName } from "../../protocol/notifications.ts";
import { WEBSOCKET_PATH } from "../../protocol/wire.ts";

/** A notification as received: `session/event` has its `event`, the others the fields of their row. */
export interface Told {
  readonly name: NotificationName;
  readonly params: Readonly<Record<string, unknown>> & { readonly seq: number; readonly at: number };
}

/** All notifications of the daemon about one session, in the order of `seq`. */
export class Notifications implements AsyncDisposable {
  readonly all: Told[] = [];
  readonly #socket: WebSocket;
  readonly #waiting = new Set<{ readonly fits: (told: Told) => boolean; resolve(told: Told): void }>();

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on("message", (data) => {
      const { method, params } = JSON.parse(String(data)) as { method?: NotificationName; params: Told["params"] };
      if (method !== undefined) this.#take({ name: method, params });
    });
  }

  static async of(stateDir: string, sessionId: string): Promise<Notifications> {
    const { socketPath, token } = await readDaemonFile(stateDir);
    const headers = { Host: "localhost", Authorization: `Bearer ${token}` };
    const socket = new WebSocket(`ws+unix:${socketPath}:${WEBSOCKET_PATH}`, { headers });
    const notifications = new Notifications(socket);
    await once(socket, "open");
    const answered = once(socket, "message");
    socket.send(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "session/subscribe", params: { sessionId } }));
    await answered;
    return notifications;
  }

  /** The first that fits, past or future. */
  async until(fits: (told: Told) => boolean): Promise<Told> {
    const known = this.all.find(fits);
    if (known !== undefined) return known;
    const { promise, resolve } = Promise.withResolvers<Told>();
    this.#waiting.add({ fits, resolve });
    return await promise;
  }

  /** The first event of pi of a type that fits. */
  event(type: string, fits: (event: Readonly<Record<string, unknown>>) => boolean = () => true): Promise<Told> {
    return this.until((told) => {
      const event = told.params["event"] as Readonly<Record<string, unknown>> | undefined;
      return event?.["type"] === type && fits(event);
    });
  }

  /** Those with a given name. */
  named(name: NotificationName): Told[] {
    return this.all.filter((told) => told.name === name);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket.close();
    if (this.#socket.readyState !== WebSocket.CLOSED) await once(this.#socket, "close");
  }

  #take(told: Told): void {
    this.all.push(told);
    for (const waiting of [...this.#waiting]) {
      if (!waiting.fits(told)) continue;
      this.#waiting.delete(waiting);
      waiting.resolve(told);
    }
  }
}
