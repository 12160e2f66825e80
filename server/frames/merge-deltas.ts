import type { Frame } from "./frame.ts";

/** The fields of a delta's envelope that merging reads. */
interface DeltaEnvelope {
  readonly jsonrpc: unknown;
  readonly method: unknown;
  readonly params: {
    readonly sessionId: string;
    readonly seq: number;
    readonly firstSeq?: number;
    readonly at: number;
    readonly generation: number;
    readonly event: {
      readonly type: string;
      readonly assistantMessageEvent: {
        readonly type: string;
        readonly contentIndex: number;
        readonly delta: string;
      };
    };
  };
}

const mergedTypes: ReadonlySet<unknown> = new Set(["text_delta", "thinking_delta", "toolcall_delta"]);

/**
 * Merges consecutive deltas of the same content block: of the same session and child, without a number between them,
 * with the same `assistantMessageEvent.type` and `contentIndex`. Other frames, and deltas without a neighbour to
 * merge with, are returned as the same objects in the same order. A merged frame is the newest record of the block
 * (its `usage` is cumulative) with all deltas joined, in an envelope with `firstSeq..seq`.
 */
export function mergeDeltas(frames: readonly Frame[]): Frame[] {
  const merged: Frame[] = [];
  let run: Run | undefined;
  for (const frame of frames) {
    if (run?.takes(frame)) continue;
    const envelope = frame.isDelta ? deltaOf(frame) : undefined;
    if (envelope !== undefined && run?.takes(frame, envelope)) continue;
    if (run !== undefined) merged.push(...run.frames());
    run = envelope === undefined ? undefined : new Run(frame, envelope);
    if (run === undefined) merged.push(frame);
  }
  if (run !== undefined) merged.push(...run.frames());
  return merged;
}

/** Consecutive deltas of one block. */
class Run {
  readonly #envelope: DeltaEnvelope;
  readonly #frames: Frame[];
  readonly #deltas: string[];
  /** What is before the text of a delta in records as pi writes them. A text cannot contain it: its quotes are escaped. */
  readonly #head: Buffer;
  readonly #generation: Buffer;
  /** Where these two were in the newest frame. They are at the same place in most frames. */
  #generationAt = 0;
  #headAt = 0;

  constructor(frame: Frame, envelope: DeltaEnvelope) {
    const { generation, event } = envelope.params;
    const { type, contentIndex, delta } = event.assistantMessageEvent;
    this.#envelope = envelope;
    this.#frames = [frame];
    this.#deltas = [delta];
    this.#head = Buffer.from(`"assistantMessageEvent":{"type":"${type}","contentIndex":${contentIndex},"delta":"`);
    this.#generation = Buffer.from(`,"generation":${generation},"event":`);
  }

  /** Adds a frame if it continues this run. Without its envelope, only a record as pi writes it is added. */
  takes(frame: Frame, envelope?: DeltaEnvelope): boolean {
    const last = this.#frames.at(-1) as Frame;
    if (!frame.isDelta || frame.sessionId !== last.sessionId) return false;
    if ((frame.firstSeq ?? frame.seq) !== last.seq + 1) return false;
    const delta = envelope === undefined ? this.#textIn(frame.bytes) : this.#deltaOf(envelope);
    if (delta === undefined) return false;
    this.#frames.push(frame);
    this.#deltas.push(delta);
    return true;
  }

  /** The merged frame. A newest record that is not valid stays as it is. */
  frames(): readonly Frame[] {
    const [first] = this.#frames;
    const last = this.#frames.at(-1);
    if (first === undefined || last === undefined || first === last) return this.#frames;
    const envelope = deltaOf(last);
    if (envelope === undefined) {
      this.#frames.pop();
      this.#deltas.pop();
      return [...this.frames(), last];
    }
    const firstSeq = first.firstSeq ?? first.seq;
    const { sessionId, seq, firstSeq: _first, event, ...rest } = envelope.params;
    const assistantMessageEvent = { ...event.assistantMessageEvent, delta: this.#deltas.join("") };
    const params = { sessionId, seq, firstSeq, ...rest, event: { ...event, assistantMessageEvent } };
    const text = JSON.stringify({ jsonrpc: "2.0", method: "session/event", params });
    return [{ bytes: Buffer.from(text), sessionId, seq, firstSeq, isDelta: true }];
  }

  #deltaOf({ params }: DeltaEnvelope): string | undefined {
    const { generation, event } = this.#envelope.params;
    const { type, contentIndex } = event.assistantMessageEvent;
    const update = params.event.assistantMessageEvent;
    const isOfBlock = params.generation === generation && update.type === type && update.contentIndex === contentIndex;
    return isOfBlock ? update.delta : undefined;
  }

  /** Finds a delta without parsing its record, which would take most of the time of merging. */
  #textIn(bytes: Buffer): string | undefined {
    const event = placeOf(this.#generation, bytes, 0, this.#generationAt);
    const head = event === -1 ? -1 : placeOf(this.#head, bytes, event, this.#headAt);
    if (head === -1) return undefined;
    this.#generationAt = event;
    this.#headAt = head;
    const start = head + this.#head.length;
    const plain = plainText(bytes, start);
    if (plain !== undefined) return plain;
    let end = bytes.indexOf(quote, start);
    while (end !== -1 && isEscaped(bytes, end)) end = bytes.indexOf(quote, end + 1);
    if (end === -1) return undefined;
    try {
      return JSON.parse(bytes.toString("utf8", start - 1, end + 1)) as string;
    } catch {
      return undefined;
    }
  }
}

const quote = 0x22;
const backslash = 0x5c;
/** A longer text is not looked at byte by byte. */
const maxPlainBytes = 256;

/** Where `part` begins, searched for from `from` on if it is not at `expected`. */
function placeOf(part: Buffer, bytes: Buffer, from: number, expected: number): number {
  return isAt(part, bytes, expected) && expected >= from ? expected : bytes.indexOf(part, from);
}

function isAt(part: Buffer, bytes: Buffer, at: number): boolean {
  for (let i = 0; i < part.length; i += 1) if (bytes[at + i] !== part[i]) return false;
  return true;
}

/** The text up to the next quote, if it is short and without escapes and invalid characters. */
function plainText(bytes: Buffer, start: number): string | undefined {
  const limit = Math.min(bytes.length, start + maxPlainBytes);
  let isAscii = true;
  for (let i = start; i < limit; i += 1) {
    const byte = bytes[i] as number;
    if (byte === quote) return bytes.toString(isAscii ? "latin1" : "utf8", start, i);
    if (byte === backslash || byte < firstValid) return undefined;
    if (byte >= firstNotAscii) isAscii = false;
  }
  return undefined;
}

const firstValid = 0x20;
const firstNotAscii = 0x80;

function isEscaped(bytes: Buffer, at: number): boolean {
  let before = at;
  while (bytes[before - 1] === backslash) before -= 1;
  return (at - before) % 2 === 1;
}

function deltaOf({ bytes }: Frame): DeltaEnvelope | undefined {
  // Most other frames are recognised by their bytes.
  if (!bytes.includes('"delta":')) return undefined;
  const envelope = parsed(bytes);
  if (envelope === undefined) return undefined;
  const { type, assistantMessageEvent: update } = envelope.params.event;
  const isDelta =
    type === "message_update" &&
    typeof update === "object" &&
    update !== null &&
    mergedTypes.has(update.type) &&
    typeof update.delta === "string" &&
    typeof update.contentIndex === "number";
  return isDelta ? envelope : undefined;
}

/** High-rate records are forwarded without parsing, so one may look like JSON and be invalid. */
function parsed(bytes: Buffer): DeltaEnvelope | undefined {
  try {
    return JSON.parse(bytes.toString("utf8")) as DeltaEnvelope;
  } catch {
    return undefined;
  }
}
