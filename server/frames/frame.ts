import type { Gap } from "../../protocol/event.ts";

/**
 * One notification for subscribers: an immutable object that all of them share. The bytes are a complete JSON-RPC
 * notification in UTF-8.
 */
export interface Frame {
  readonly bytes: Buffer;
  /** Empty if it is not about a session. */
  readonly sessionId: string;
  /** Its number in the session's log, or the last number that it covers; 0 if it has none. */
  readonly seq: number;
  /** The first number that it covers, if there are several. */
  readonly firstSeq?: number;
  /** A high-rate record of pi, which may be merged with its neighbours, or dropped and reported as a gap. */
  readonly isDelta: boolean;
  /**
   * This many bytes before `bytes`, in the same memory, are the head of its WebSocket text message. Frames whose
   * messages are adjacent can be written as one block. Absent: no head.
   */
  readonly headBytes?: number;
}

/** A notification without a number in a log. */
export function unnumberedFrame(bytes: Buffer, sessionId = ""): Frame {
  return { bytes, sessionId, seq: 0, isDelta: false };
}

/**
 * Reports that the numbers `from` to `to`, inclusive, are not sent. It covers them: its own numbers are
 * `firstSeq..seq`.
 */
export function gapFrame(sessionId: string, gap: Gap): Frame {
  const params = JSON.stringify({ sessionId, ...gap });
  const bytes = Buffer.from(`{"jsonrpc":"2.0","method":"session/gap","params":${params}}`);
  return { bytes, sessionId, seq: gap.to, firstSeq: gap.from, isDelta: false };
}
