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

/** Where `/acp` is, and the header with the daemon's own token. */
export async function addressOfAcp({ stateDir }: { readonly stateDir: string }): Promise<{
  readonly address: string;
  readonly unixAddress: string;
  readonly authorization: string;
}> {
  const { url, socketPath, token } = await readDaemonFile(stateDir);
  return {
    address: `${url.replace("http", "ws")}${ACP_PATH}`,
    unixAddress: `ws+unix:${socketPath}:${ACP_PATH}`,
    authorization: `Bearer ${token}`,
  };
}

/** Opens `/acp`. Rejects with the status of a refusal. */
export async function openAcp(
  stage: { readonly stateDir: string },
  { token, protocols = [], headers = {}, unix = false }: Opening = {},
): Promise<Opened> {
  const { address, unixAddress, authorization: own } = await addressOfAcp(stage);
  const authorization = token === null ? {} : { authorization: token === undefined ? own : `Bearer ${token}` };
  const host = unix ? { host: "localhost" } : {};
  const options: ClientOptions = { headers: { ...authorization, ...host, ...headers }, maxPayload: 0 };
  const socket = new WebSocket(unix ? unixAddress : address, [...protocols], options);
  const { promise, resolve, reject } = Promise.withResolvers<Opened>();
  socket.on("error", reject);
  socket.on("unexpected-response", (request, { statusCode }) => {
    request.destroy();
    reject(new Error(`refused with ${statusCode}`));
  });
  socket.on("upgrade", ({ headers: received }) => socket.once("open", () => resolve({ socket, headers: received })));
  return await promise;
}
