import type { Gap } from "../../protocol/event.ts";

/**
 * One notification on its way to subscribers: one object for each, shared by all of them, and never changed. The bytes
 * are a whole JSON-RPC notification in UTF-8.
 */
export interface Frame {
  readonly bytes: Buffer;
  /** Empty where it is about no session. */
  readonly sessionId: string;
  /** Its place in the session's log, or the last of those that it stands for; 0 where it has none. */
  readonly seq: number;
  /** The first place of those that it stands for, where there are several. */
  readonly firstSeq?: number;
  /** A high-rate record of pi, which may be merged with its neighbours, or left out and told as a gap. */
  readonly isDelta: boolean;
  /**
   * So many bytes in front of `bytes`, in the same memory, are the head of a WebSocket text message that holds them.
   * Frames whose messages lie one behind the other can be written as one piece. Absent: there is none.
   */
  readonly headBytes?: number;
}

/** A notification that has no place in a log. */
export function unnumberedFrame(bytes: Buffer, sessionId = ""): Frame {
  return { bytes, sessionId, seq: 0, isDelta: false };
}

/** Says that the numbers `from` to `to`, both included, are not sent. It covers them: its own place is `firstSeq..seq`. */
export function gapFrame(sessionId: string, gap: Gap): Frame {
  const params = JSON.stringify({ sessionId, ...gap });
  const bytes = Buffer.from(`{"jsonrpc":"2.0","method":"session/gap","params":${params}}`);
  return { bytes, sessionId, seq: gap.to, firstSeq: gap.from, isDelta: false };
}
