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
    const envelope = frame.isDelta ? deltaOf(frame) : undefined;
    if (run !== undefined && envelope !== undefined && run.takes(frame, envelope)) continue;
    if (run !== undefined) merged.push(run.frame());
    run = envelope === undefined ? undefined : new Run(frame, envelope);
    if (run === undefined) merged.push(frame);
  }
  if (run !== undefined) merged.push(run.frame());
  return merged;
}

/** Consecutive deltas of one block. */
class Run {
  readonly #first: Frame;
  readonly #deltas: string[];
  #last: Frame;
  #envelope: DeltaEnvelope;

  constructor(frame: Frame, envelope: DeltaEnvelope) {
    this.#first = frame;
    this.#last = frame;
    this.#envelope = envelope;
    this.#deltas = [envelope.params.event.assistantMessageEvent.delta];
  }

  takes(frame: Frame, envelope: DeltaEnvelope): boolean {
    if ((frame.firstSeq ?? frame.seq) !== this.#last.seq + 1) return false;
    const { params } = envelope;
    const former = this.#envelope.params;
    const update = params.event.assistantMessageEvent;
    const before = former.event.assistantMessageEvent;
    if (params.sessionId !== former.sessionId || params.generation !== former.generation) return false;
    if (update.type !== before.type || update.contentIndex !== before.contentIndex) return false;
    this.#deltas.push(update.delta);
    this.#last = frame;
    this.#envelope = envelope;
    return true;
  }

  frame(): Frame {
    if (this.#first === this.#last) return this.#first;
    const { sessionId, seq } = this.#last;
    const firstSeq = this.#first.firstSeq ?? this.#first.seq;
    const { sessionId: _id, seq: _seq, firstSeq: _first, event, ...rest } = this.#envelope.params;
    const assistantMessageEvent = { ...event.assistantMessageEvent, delta: this.#deltas.join("") };
    const params = { sessionId, seq, firstSeq, ...rest, event: { ...event, assistantMessageEvent } };
    const text = JSON.stringify({ jsonrpc: "2.0", method: "session/event", params });
    return { bytes: Buffer.from(text), sessionId, seq, firstSeq, isDelta: true };
  }
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
