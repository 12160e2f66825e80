import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";

type Settle = () => void;

/** What is to be done at the end of each response of a socket that is under way. */
const open = new WeakMap<Socket, Set<Settle>>();
const ends = new WeakMap<ServerResponse, Settle[]>();

/**
 * Calls back once when a response has been given or nobody can get it any more; at once where that is so already. Not
 * every Node tells of the close of a response that waits behind another (pipelining) when their socket closes, so the
 * socket's own end counts too.
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
