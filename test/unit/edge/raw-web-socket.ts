import type { Transport } from "../../../server/edge/admission.ts";
import { authorization, type TestEdge } from "../../helpers/edge.ts";
import { type RawSocket, rawSocket } from "./raw-socket.ts";

export const opcodes = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;

export interface FrameOptions {
  readonly opcode?: number;
  /** Whether it is the message's last. Default: true. */
  readonly fin?: boolean;
  readonly masked?: boolean;
  readonly reserved?: number;
}

/** A frame as a client writes it (RFC 6455, section 5.2), masked with zeros. */
export function frame(payload: Buffer | string, options: FrameOptions = {}): Buffer {
  const { opcode = opcodes.text, fin = true, masked = true, reserved = 0 } = options;
  const body = Buffer.from(payload);
  const mask = masked ? 0x80 : 0;
  const first = (fin ? 0x80 : 0) | (reserved << 4) | opcode;
  const head = lengthHead(first, mask, body.length);
  return Buffer.concat([head, Buffer.alloc(masked ? 4 : 0), body]);
}

function lengthHead(first: number, mask: number, length: number): Buffer {
  if (length < 126) return Buffer.from([first, mask | length]);
  if (length < 65_536) return Buffer.from([first, mask | 126, length >> 8, length & 0xff]);
  const head = Buffer.alloc(10);
  head.writeUInt8(first, 0);
  head.writeUInt8(mask | 127, 1);
  head.writeBigUInt64BE(BigInt(length), 2);
  return head;
}

export interface Frame {
  readonly opcode: number;
  readonly payload: Buffer;
}

/** The complete frames received after the head of the upgrade's answer. */
export function framesOf(received: string): readonly Frame[] {
  let bytes = Buffer.from(received.slice(received.indexOf("\r\n\r\n") + 4), "latin1");
  const frames: Frame[] = [];
  while (bytes.length >= 2) {
    const short = bytes.readUInt8(1) & 0x7f;
    const [start, length] =
      short < 126 ? [2, short] : short === 126 ? [4, bytes.readUInt16BE(2)] : [10, Number(bytes.readBigUInt64BE(2))];
    if (bytes.length < start + length) break;
    frames.push({ opcode: bytes.readUInt8(0) & 0x0f, payload: bytes.subarray(start, start + length) });
    bytes = bytes.subarray(start + length);
  }
  return frames;
}

/** The code and reason of the close frame among them, if there is one. */
export function closeOf(received: string): { readonly code: number; readonly reason: string } | undefined {
  const found = framesOf(received).find(({ opcode }) => opcode === opcodes.close);
  if (found === undefined) return undefined;
  return { code: found.payload.readUInt16BE(0), reason: found.payload.subarray(2).toString() };
}

/** A bare socket that has been upgraded to a WebSocket. */
export async function rawWebSocket(edge: TestEdge, transport: Transport = "tcp"): Promise<RawSocket> {
  const raw = rawSocket(edge, transport);
  raw.socket.write(
    `${[
      "GET /v1/ws HTTP/1.1",
      `host: localhost:${edge.port}`,
      `authorization: ${authorization.authorization}`,
      "connection: Upgrade",
      "upgrade: websocket",
      "sec-websocket-version: 13",
      "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==",
    ].join("\r\n")}\r\n\r\n`,
  );
  await raw.until((text) => text.includes("\r\n\r\n"));
  return raw;
}
