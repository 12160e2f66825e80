import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { within } from "./deadline.ts";
import type { Resources } from "./figure.ts";

const headEnd = Buffer.from("\r\n\r\n", "latin1");
const connections = 8;

/** Connections that repeat one request, each after its previous answer, with little work per request. */
export class HttpLoad {
  readonly #sockets: readonly Socket[];
  readonly #request: Buffer;

  private constructor(sockets: readonly Socket[], request: Buffer) {
    this.#sockets = sockets;
    this.#request = request;
  }

  static async open(port: number, request: string, resources: Resources): Promise<HttpLoad> {
    const sockets: Socket[] = [];
    for (let i = 0; i < connections; i += 1) {
      const socket = resources.add(connect({ host: "127.0.0.1", port, noDelay: true }), (open) => void open.destroy());
      await once(socket, "connect");
      sockets.push(socket);
    }
    return new HttpLoad(sockets, Buffer.from(request, "latin1"));
  }

  /** Resolves with the seconds that this many requests took. Rejects if the status of one is not 200. */
  async run(requests: number): Promise<number> {
    let left = requests;
    const startedAt = performance.now();
    const all = Promise.all(this.#sockets.map((socket) => this.#runOn(socket, () => left-- > 0)));
    await within(60, () => `${Math.max(0, left)} of ${requests} HTTP requests`, all);
    return (performance.now() - startedAt) / 1_000;
  }

  /** The body of one answer. */
  async body(): Promise<string> {
    let text = "";
    await this.#runOn(
      this.#sockets[0] as Socket,
      () => text === "",
      (answer) => {
        text = answer.subarray(answer.indexOf(headEnd) + headEnd.length).toString("utf8");
      },
    );
    return text;
  }

  #runOn(socket: Socket, takeNext: () => boolean, onAnswer: (answer: Buffer) => void = () => {}): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    let heard: Buffer = Buffer.alloc(0);
    const next = (): void => {
      if (takeNext()) {
        socket.write(this.#request);
        return;
      }
      socket.off("data", take).off("close", fail);
      resolve();
    };
    const fail = (): void => reject(new Error("The server closed a connection."));
    const take = (chunk: Buffer): void => {
      heard = heard.length === 0 ? chunk : Buffer.concat([heard, chunk]);
      const end = heard.indexOf(headEnd);
      if (end === -1) return;
      const head = heard.toString("latin1", 0, end);
      const length = Number(/content-length: (\d+)/i.exec(head)?.[1]);
      if (Number.isNaN(length)) reject(new Error("An answer has no content-length."));
      if (heard.length < end + headEnd.length + length) return;
      if (!head.startsWith("HTTP/1.1 200")) reject(new Error(heard.toString("utf8")));
      const answer = heard;
      heard = Buffer.alloc(0);
      onAnswer(answer);
      next();
    };
    socket.on("data", take).on("close", fail);
    if (socket.destroyed) fail();
    else next();
    return promise;
  }
}
