import { ConnectionFailedError } from "./local-errors.ts";

export interface HttpAnswer {
  readonly status: number | undefined;
  readonly body: string;
}

export interface SocketRequest {
  readonly socketPath: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string | number>>;
  readonly body: string;
  readonly signal: AbortSignal | undefined;
  readonly maxAnswerBytes: number;
}

/** What Node's own client accepts, too. */
const maxHeadBytes = 16_384;

/**
 * Sends one POST to a Unix socket and returns the answer. Loading `node:http` would take a short command longer than
 * everything else that it loads. The request is HTTP/1.0, so that the answer is a head and one body, which ends at its
 * `content-length` or with the connection.
 */
export function postToSocket(request: SocketRequest): Promise<HttpAnswer> {
  const { socketPath, signal, maxAnswerBytes } = request;
  const { connect } = process.getBuiltinModule("node:net");
  return new Promise((resolve, reject) => {
    const text = textOf(request);
    const socket = connect({ path: socketPath, ...(signal !== undefined && { signal }) });
    const reader = new AnswerReader(maxAnswerBytes);
    socket.on("data", (chunk: Buffer) => {
      try {
        const answer = reader.add(chunk);
        if (answer === undefined) return;
        resolve(answer);
        socket.destroy();
      } catch (error) {
        socket.destroy(error as Error);
      }
    });
    socket.on("end", () => {
      const answer = reader.atEnd();
      if (answer === undefined) reject(ended());
      else resolve(answer);
    });
    socket.on("error", (error) => reject(signal?.aborted === true ? signal.reason : error));
    // Another end comes after one of these events, and its rejection has no effect.
    socket.on("close", () => reject(ended()));
    socket.write(text);
  });
}

/** Collects the bytes of one answer. */
class AnswerReader {
  readonly #maxBytes: number;
  #chunks: Buffer[] = [];
  #size = 0;
  #head: Head | undefined;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Returns the answer if these bytes complete it. Throws if it is not valid. */
  add(chunk: Buffer): HttpAnswer | undefined {
    this.#chunks.push(chunk);
    this.#size += chunk.length;
    this.#head ??= this.#takeHead();
    if (this.#head === undefined) return undefined;
    const { status, length } = this.#head;
    if (Math.max(this.#size, length ?? 0) > this.#maxBytes)
      throw new ConnectionFailedError(`The answer is longer than maxAnswerBytes (${this.#maxBytes}).`);
    if (length === undefined || this.#size < length) return undefined;
    if (this.#size > length) throw new Error("the answer is longer than its content-length");
    return { status, body: this.#body() };
  }

  /** The answer if the end of the connection completes it. */
  atEnd(): HttpAnswer | undefined {
    if (this.#head === undefined || this.#head.length !== undefined) return undefined;
    return { status: this.#head.status, body: this.#body() };
  }

  #takeHead(): Head | undefined {
    const received = Buffer.concat(this.#chunks);
    const end = received.indexOf("\r\n\r\n");
    if ((end === -1 ? received.length : end) > maxHeadBytes) throw new Error("the answer's headers are too long");
    if (end === -1) return undefined;
    const rest = received.subarray(end + 4);
    this.#chunks = [rest];
    this.#size = rest.length;
    return headOf(received.toString("latin1", 0, end));
  }

  #body(): string {
    return Buffer.concat(this.#chunks).toString();
  }
}

function ended(): Error {
  return Object.assign(new Error("socket hang up"), { code: "ECONNRESET" });
}

function textOf({ path, headers, body }: SocketRequest): string {
  const lines = Object.entries({ host: "localhost", ...headers }).map(([name, value]) => `${name}: ${value}`);
  const wrong = lines.find((line) => !/^[ -~]+$/.test(line));
  if (wrong !== undefined) throw new TypeError(`the header ${wrong.split(":")[0]} has a character that is not allowed`);
  return `POST ${path} HTTP/1.0\r\n${lines.join("\r\n")}\r\n\r\n${body}`;
}

interface Head {
  readonly status: number;
  /** The bytes of the body. Undefined: it ends with the connection. */
  readonly length: number | undefined;
}

function headOf(text: string): Head {
  const [first = "", ...lines] = text.split("\r\n");
  const status = /^HTTP\/1\.[01] ([2-5]\d\d)(?: |$)/.exec(first)?.[1];
  if (status === undefined) throw new Error("the answer is not HTTP");
  let length: number | undefined;
  for (const line of lines) {
    const [, name = "", value = ""] = /^([^:\s]+):[ \t]*(.*?)[ \t]*$/.exec(line) ?? [];
    if (name === "") throw new Error("the answer has a header that is not valid");
    // An answer to HTTP/1.0 must not have one (RFC 9112, section 6.1).
    if (/^transfer-encoding$/i.test(name)) throw new Error("the answer has a transfer-encoding");
    if (!/^content-length$/i.test(name)) continue;
    if (!/^\d{1,15}$/.test(value) || (length !== undefined && length !== Number(value)))
      throw new Error("the answer has a content-length that is not valid");
    length = Number(value);
  }
  return { status: Number(status), length };
}
