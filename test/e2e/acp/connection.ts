import type { IncomingMessage } from "node:http";
import { type ClientOptions, WebSocket } from "ws";
import { readDaemonFile } from "../../../client/index.ts";
import { ACP_PATH } from "../../../protocol/wire.ts";

export interface Opening {
  /** Default: the daemon's own. `null`: none in the header. */
  readonly token?: string | null;
  readonly protocols?: readonly string[];
  readonly headers?: Readonly<Record<string, string>>;
  readonly unix?: boolean;
}

export interface Opened {
  readonly socket: WebSocket;
  readonly headers: IncomingMessage["headers"];
}

/** Opens `/acp`. Rejects with the status of a refusal. */
export async function openAcp(
  { stateDir }: { readonly stateDir: string },
  { token, protocols = [], headers = {}, unix = false }: Opening = {},
): Promise<Opened> {
  const { url, socketPath, token: main } = await readDaemonFile(stateDir);
  const address = unix ? `ws+unix:${socketPath}:${ACP_PATH}` : `${url.replace("http", "ws")}${ACP_PATH}`;
  const authorization = token === null ? {} : { authorization: `Bearer ${token ?? main}` };
  const host = unix ? { host: "localhost" } : {};
  const options: ClientOptions = { headers: { ...authorization, ...host, ...headers }, maxPayload: 0 };
  const socket = new WebSocket(address, [...protocols], options);
  const { promise, resolve, reject } = Promise.withResolvers<Opened>();
  socket.on("error", reject);
  socket.on("unexpected-response", (request, { statusCode }) => {
    request.destroy();
    reject(new Error(`refused with ${statusCode}`));
  });
  socket.on("upgrade", ({ headers: received }) => socket.once("open", () => resolve({ socket, headers: received })));
  return await promise;
}
