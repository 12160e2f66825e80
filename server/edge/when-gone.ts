import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";

type Settle = () => void;

/** The callbacks of a socket's unfinished responses. */
const openKey = Symbol("open");
/** The callbacks of a response. Kept on it, because each minor garbage collection would visit every entry of a WeakMap. */
const endsKey = Symbol("ends");

interface WatchedSocket extends Socket {
  [openKey]?: Set<Settle>;
}

interface WatchedResponse extends ServerResponse {
  [endsKey]?: Settle[] | undefined;
}

/**
 * Calls back once when a response has ended or its socket is closed; at once if that has already happened. Some versions
 * of Node emit no `close` for a response that waits behind another (pipelining), so the end of the socket counts too.
 */
export function whenGone({ socket }: Pick<IncomingMessage, "socket">, response: WatchedResponse, then: Settle): void {
  const known = response[endsKey];
  if (known !== undefined) known.push(then);
  else if (response.closed || socket.closed) then();
  else begin(socket, response, then);
}

function begin(socket: WatchedSocket, response: WatchedResponse, first: Settle): void {
  const waiting = [first];
  const responses = socket[openKey] ?? watch(socket);
  const settle = (): void => {
    if (!responses.delete(settle)) return;
    response[endsKey] = undefined;
    for (const then of waiting) then();
  };
  response[endsKey] = waiting;
  responses.add(settle);
  response.on("close", settle);
}

function watch(socket: WatchedSocket): Set<Settle> {
  const responses = new Set<Settle>();
  socket[openKey] = responses;
  socket.once("close", () => {
    for (const settle of [...responses]) settle();
  });
  return responses;
}
