import { once } from "node:events";
import { WebSocket } from "ws";
import type { DaemonFile } from "../../protocol/daemon-file.ts";
import { createValidator } from "../../protocol/validation.ts";
import { WEBSOCKET_PATH } from "../../protocol/wire.ts";
import { unnumberedFrame } from "../../server/frames/frame.ts";
import { type Heard, recorder } from "./core.ts";

/** A separate connection that records every notification as received. */
export interface Watcher extends AsyncDisposable {
  /** All of them, in order. */
  readonly heard: readonly Heard[];
  /** Those about requests to the provider so far: waits for everything that the daemon sent before this call. */
  requests(): Promise<readonly Heard[]>;
  /** The same, in a few words each. */
  summaries(): Promise<string[]>;
  /** The first that fits, past or future. */
  until(fits: (heard: Heard) => boolean): Promise<Heard>;
  call(method: string, params: object): Promise<{ readonly result?: unknown; readonly error?: { data: unknown } }>;
}

/** Connects and subscribes to a session, with further params of `session/subscribe`. */
export async function watch(daemon: DaemonFile, sessionId: string, params: object = {}): Promise<Watcher> {
  const socket = new WebSocket(`${daemon.url.replace("http", "ws")}${WEBSOCKET_PATH}`, {
    headers: { authorization: `Bearer ${daemon.token}` },
  });
  const log = recorder();
  const answers = new Map<number, (answer: never) => void>();
  const validator = createValidator();
  const wrong: unknown[] = [];
  socket.on("message", (data: Buffer) => {
    const message = JSON.parse(data.toString("utf8"));
    if (message.method === undefined) return answers.get(message.id)?.(message as never);
    wrong.push(...validator.notification(message.method, message.params));
    log.send(unnumberedFrame(data));
  });
  await once(socket, "open");
  let calls = 0;
  const call: Watcher["call"] = (method, callParams) => {
    calls += 1;
    const { promise, resolve } = Promise.withResolvers<never>();
    answers.set(calls, resolve);
    socket.send(JSON.stringify({ jsonrpc: "2.0", id: calls, method, params: callParams }));
    return promise;
  };
  await call("session/subscribe", { sessionId, ...params });
  const requests = async (): Promise<Heard[]> => {
    // An answer comes after everything that was sent before it.
    await call("daemon/info", {});
    return log.heard.filter(({ method }) => method.startsWith("provider/"));
  };
  return {
    heard: log.heard,
    requests,
    summaries: async () => (await requests()).map(inWords),
    until: log.until,
    call,
    [Symbol.asyncDispose]: async () => {
      socket.close();
      await once(socket, "close");
      if (wrong.length > 0) throw new Error(`Notifications break their schema: ${JSON.stringify(wrong.slice(0, 3))}`);
    },
  };
}

function inWords({ method, params }: Heard): string {
  const { attempt, status, evidence, reason, willRetry } = params;
  if (method === "provider/requestPrepared") return `prepared ${attempt}`;
  if (method === "provider/requestDelivered") return ["delivered", evidence, status].filter(Boolean).join(" ");
  const retry = willRetry === undefined ? [] : [willRetry ? "retry" : "no retry"];
  return ["failed", reason, status, ...retry].filter((word) => word !== undefined).join(" ");
}
