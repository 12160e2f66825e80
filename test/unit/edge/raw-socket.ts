import { connect, type Socket } from "node:net";
import type { Transport } from "../../../server/edge/admission.ts";
import type { Address } from "../../helpers/edge.ts";

/** A bare socket, for input that no well-behaved client would write. */
export interface RawSocket extends Disposable {
  readonly socket: Socket;
  /** All received text, once the edge has closed the socket. */
  readonly ended: Promise<string>;
  /** The received text when `fits` first holds, or when the socket has ended. */
  until(fits: (text: string) => boolean): Promise<string>;
}

export function rawSocket(edge: Address, transport: Transport = "tcp"): RawSocket {
  const socket = connect(transport === "tcp" ? { host: "127.0.0.1", port: edge.port } : { path: edge.socketPath });
  const ended = Promise.withResolvers<string>();
  let text = "";
  socket.setEncoding("latin1");
  socket.on("data", (chunk: string) => {
    text += chunk;
  });
  socket.on("error", () => {});
  socket.once("close", () => ended.resolve(text));
  return {
    socket,
    ended: ended.promise,
    until: async (fits) => {
      const { promise, resolve } = Promise.withResolvers<string>();
      const check = (): void => {
        if (fits(text)) resolve(text);
      };
      socket.on("data", check);
      check();
      try {
        return await Promise.race([promise, ended.promise]);
      } finally {
        socket.off("data", check);
      }
    },
    [Symbol.dispose]: () => {
      socket.destroy();
    },
  };
}
