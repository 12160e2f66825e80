import { isUtf8 } from "node:buffer";
import type { Readable, Writable } from "node:stream";
import type { FrameListener, WebSocket } from "../../client/node-socket.ts";
import type { SocketEnd } from "../../client/socket.ts";
import { type ErrorName, WireError } from "../../protocol/errors.ts";
import { type Framing, FramingError } from "./framing.ts";
import type { MessageReader } from "./header-splitter.ts";
import { OpenCalls } from "./open-calls.ts";

export interface BridgeOptions {
  readonly framing: Framing;
  readonly input: Readable;
  readonly output: Writable;
  /** A longer message is answered with `too_large` by the bridge, because the daemon would end the connection. */
  readonly maxMessageBytes: number;
  /** How long to wait for answers after the input has ended. */
  readonly lingerMs: number;
  readonly signal: AbortSignal;
}

/** How a bridge ended. `input` and `framing`: its input ended or was unreadable, and all answers were written. */
export type BridgeEnd =
  | { readonly by: "input"; readonly isWhole: boolean; readonly unanswered: boolean }
  | { readonly by: "daemon"; readonly end: SocketEnd }
  | { readonly by: "framing"; readonly error: FramingError };

type InputEnd =
  | { readonly by: "input"; readonly isWhole: boolean }
  | { readonly by: "framing"; readonly error: FramingError };

/** The input is paused while this many bytes wait for the daemon. */
const maxWaitingBytes = 4 * 1024 * 1024;

/**
 * Forwards messages between a stream and a socket without changing their bytes. Neither side is read faster than the
 * other side accepts: the buffers are bounded, and the daemon sees a slow reader of the output as a slow client.
 */
export class Bridge implements FrameListener {
  readonly #options: BridgeOptions;
  readonly #calls = new OpenCalls();
  readonly #ended = Promise.withResolvers<BridgeEnd>();
  readonly #reader: MessageReader;
  #socket: WebSocket | undefined;
  /** How the bridge will end after the last answer; undefined while there is more input. */
  #inputEnd: InputEnd | undefined;
  #isOver = false;

  constructor(options: BridgeOptions) {
    this.#options = options;
    this.#reader = options.framing.reader(
      {
        onMessage: (message) => this.#send(message),
        onOversize: (bytes) =>
          this.#refuse("too_large", `A message has ${bytes} bytes; the limit is ${options.maxMessageBytes}.`),
      },
      options.maxMessageBytes,
    );
  }

  /** Forwards until one side ends. Rejects with the signal's reason. */
  async carry(socket: WebSocket): Promise<BridgeEnd> {
    this.#socket = socket;
    const { input, output, signal } = this.#options;
    const onAbort = (): void => this.#ended.reject(signal.reason);
    const onData = (chunk: Buffer): void => this.#read(chunk);
    const onEnd = (): void => this.#onInputEnd();
    const onDrain = (): void => socket.resume();
    signal.addEventListener("abort", onAbort, { once: true });
    output.on("drain", onDrain);
    input.on("data", onData).once("end", onEnd).once("error", onEnd);
    if (signal.aborted) onAbort();
    try {
      return await this.#ended.promise;
    } finally {
      this.#isOver = true;
      signal.removeEventListener("abort", onAbort);
      input.off("data", onData).off("end", onEnd).off("error", onEnd).pause();
      output.off("drain", onDrain);
    }
  }

  onMessage(data: Buffer): void {
    // The output may already be closed.
    if (this.#isOver) return;
    this.#calls.received(data);
    this.#write(data);
    if (this.#calls.isEmpty) this.#endByInput();
  }

  onEnd(end: SocketEnd): void {
    this.#ended.resolve({ by: "daemon", end });
  }

  #read(chunk: Buffer): void {
    if (this.#inputEnd !== undefined) return;
    try {
      this.#reader.push(chunk);
    } catch (error) {
      if (!(error instanceof FramingError)) throw error;
      this.#refuse("parse_error", error.message);
      this.#endInput({ by: "framing", error });
    }
  }

  #send(message: Buffer): void {
    if (!isUtf8(message)) {
      this.#refuse("parse_error", "The message is not valid UTF-8.");
      return;
    }
    const socket = this.#socket as WebSocket;
    this.#calls.sent(message);
    socket.send(message, { binary: false }, () => {
      if (socket.bufferedAmount < maxWaitingBytes) this.#options.input.resume();
    });
    if (socket.bufferedAmount >= maxWaitingBytes) this.#options.input.pause();
  }

  /** Answers instead of the daemon. */
  #refuse(name: ErrorName, message: string): void {
    const { code, data } = new WireError(name, message);
    this.#write(Buffer.from(JSON.stringify({ jsonrpc: "2.0", id: null, error: { code, message, data } })));
  }

  #write(message: Buffer): void {
    const { output, framing } = this.#options;
    const { head, tail } = framing.around(message);
    output.cork();
    if (head !== "") output.write(head);
    let hasRoom = output.write(message);
    if (tail !== "") hasRoom = output.write(tail);
    process.nextTick(() => output.uncork());
    if (!hasRoom) this.#socket?.pause();
  }

  #onInputEnd(): void {
    if (this.#inputEnd === undefined) this.#endInput({ by: "input", isWhole: this.#reader.end() });
  }

  /** The calls sent before still get their answers. */
  #endInput(end: InputEnd): void {
    this.#inputEnd = end;
    if (this.#calls.isEmpty) this.#endByInput();
    else setTimeout(() => this.#endByInput(), this.#options.lingerMs).unref();
  }

  #endByInput(): void {
    const end = this.#inputEnd;
    if (end?.by === "framing") this.#ended.resolve(end);
    else if (end !== undefined) this.#ended.resolve({ ...end, unanswered: !this.#calls.isEmpty });
  }
}
