import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";

type Settle = () => void;

/** The callbacks of each socket's unfinished responses. */
const open = new WeakMap<Socket, Set<Settle>>();
const ends = new WeakMap<ServerResponse, Settle[]>();

/**
 * Calls back once when a response has ended or its socket is closed; at once if that has already happened. Some versions
 * of Node emit no `close` for a response that waits behind another (pipelining), so the end of the socket counts too.
 */
export function whenGone({ socket }: Pick<IncomingMessage, "socket">, response: ServerResponse, then: Settle): void {
  const known = ends.get(response);
  if (known !== undefined) known.push(then);
  else if (response.closed || socket.closed) then();
  else begin(socket, response, then);
}

function begin(socket: Socket, response: ServerResponse, first: Settle): void {
  const waiting = [first];
  const responses = open.get(socket) ?? watch(socket);
  const settle = (): void => {
    if (!responses.delete(settle)) return;
    ends.delete(response);
    for (const then of waiting) then();
  };
  ends.set(response, waiting);
  responses.add(settle);
  response.once("close", settle);
}

function watch(socket: Socket): Set<Settle> {
  const responses = new Set<Settle>();
  open.set(socket, responses);
  socket.once("close", () => {
    for (const settle of [...responses]) settle();
  });
  return responses;
}
