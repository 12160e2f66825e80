import type { Static, TProperties, TUnsafe } from "typebox";
import { type Content, ImageBlock, TextBlock } from "./content.ts";
import { DeliverAs } from "./delivery.ts";
import { DialogMethod } from "./dialog.ts";
import { DeliveryId } from "./ids.ts";
import { readonlyArray, Type } from "./json-schema.ts";
import { CARRIER_TYPE, type PartsConfig } from "./link.ts";
import { HelperContext } from "./link-context.ts";
import { isRecord } from "./objects.ts";
import { defaultOptimisation } from "./optimisation/config.ts";
import { providerLevels } from "./provider-level.ts";
import { defaultPruning } from "./pruning/config.ts";

/**
 * The frames from the daemon to the helper, and the helper's replies. Any process that can write to pi's stdin can forge
 * a frame. The helper starts without a schema library: `extension/link/` checks each field by hand, and a test compares
 * these checks with the schemas. The daemon validates replies.
 */

const name = (maxLength: number) => Type.String({ minLength: 1, maxLength });
const absolutePath = Type.String({ pattern: "^/[^\\u0000]*$" });
/** Of pushes in a reply. A session holds far fewer. */
const ids = readonlyArray(DeliveryId, { maxItems: 10_000 });

/** The text and image blocks of a push may have additional fields here. */
const pushContent = Type.Union([
  Type.String({ minLength: 1 }),
  Type.Array(
    Type.Union([
      { ...TextBlock, additionalProperties: true },
      { ...ImageBlock, additionalProperties: true },
    ]),
    { minItems: 1, maxItems: 256 },
  ),
]) as unknown as TUnsafe<Content>;

/** An open push, with what the helper needs to hand it over. */
export const HeldPush = Type.Object({
  deliveryId: DeliveryId,
  customType: Type.String({ minLength: 1, maxLength: 256, not: { const: CARRIER_TYPE } }),
  content: pushContent,
  display: Type.Boolean(),
  details: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
  deliverAs: DeliverAs,
  triggerTurn: Type.Boolean(),
  /** Effect of an aborted run while it is held. */
  onAbort: Type.Enum(["park", "drop"]),
  /** Left by an aborted or failed run: goes with the next run or prompt, but starts none. */
  parked: Type.Optional(Type.Boolean()),
});
export type HeldPush = Static<typeof HeldPush>;

/** Each part and option exists, because another version could lack one. The daemon has checked the values. */
const parts = Type.Object({
  optimisation: keysOf(defaultOptimisation, 2),
  pruning: Type.Optional(keysOf(defaultPruning)),
  spillDirectory: absolutePath,
  labels: Type.Record(Type.String(), Type.String()),
}) as unknown as TUnsafe<PartsConfig>;

function keysOf(values: object, depth = Number.POSITIVE_INFINITY): TUnsafe<unknown> {
  const nested = Object.entries(values).filter(([, value]) => depth > 1 && isRecord(value));
  const properties = Object.fromEntries(nested.map(([key, value]) => [key, keysOf(value as object, depth - 1)]));
  return { type: "object", required: Object.keys(values), properties } as unknown as TUnsafe<unknown>;
}

/** A frame from the daemon. It is answered by exactly one `reply` with its `rid`. */
function frame<const K extends string, P extends TProperties>(kind: K, properties: P) {
  return Type.Object({
    kind: Type.Literal(kind),
    rid: name(128),
    /** The session that it is for, as named by the last `hello`. Refused if that is no longer in this pi. */
    session: Type.Optional(name(128)),
    ...properties,
  });
}

export const inwardFrames = {
  /**
   * Hold these pushes and hand each over when it is due. Idempotent: a held push is unchanged, and one on the active
   * branch is answered as `inserted`. Reply: {@link HoldReply}.
   */
  hold: frame("hold", {
    pushes: readonlyArray(HeldPush),
    /** `later`: a prompt is about to follow, so no push starts a run of its own now. Default: `now`. */
    handOver: Type.Optional(Type.Enum(["now", "later"])),
  }),
  /**
   * Release these pushes if they are still held. One that was offered to pi and is not in the transcript yet is either
   * released once pi proves not to have it, or reported as inserted. Reply: {@link ReleaseReply}.
   */
  release: frame("release", { deliveryIds: readonlyArray(DeliveryId) }),
  /**
   * A prompt follows: append the held pushes that wait for one (`nextTurn`, and what an abort or a failure has left)
   * without starting a run. Reply: {@link HoldReply} of what was appended and what stays held.
   */
  beforePrompt: frame("beforePrompt", {}),
  /**
   * Make a request that carries undelivered pushes of the transcript and held pushes: while idle, a carrier starts a
   * run; a current run continues; while pi is busy otherwise, it is done later. Has no effect if the push of
   * `deliveryId` is on another branch. Reply: {@link CarryReply}.
   */
  carry: frame("carry", { deliveryId: Type.Optional(DeliveryId) }),
  /**
   * Is a message that pi has taken out of its queue of users' messages still on its way into the transcript? Reply, when
   * none is: an empty object.
   */
  drained: frame("drained", {}),
  /** Report requests to the provider at this level, starting with the next. Reply: an empty object. */
  watch: frame("watch", {
    provider: Type.Enum(providerLevels),
    /**
     * Prefix of the body files `<bodyPrefix><requestId>.messages` and `.payload`: JSON, mode 0600. The daemon deletes
     * them.
     */
    bodyPrefix: absolutePath,
    maxBodyBytes: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }),
    /** Whether the tools `edit` and `write` wait a moment before their work. */
    holdEdits: Type.Optional(Type.Boolean()),
    /** Whether a `formerText` is sent before the tool `write` replaces a file. */
    formerText: Type.Optional(Type.Boolean()),
  }),
  /**
   * Put this context before the conversation in each request from now on, while the conversation is in this process. A
   * context with the same hash stays, as compactions have shortened it; another one is replaced. Reply: {@link
   * ContextReply}.
   */
  context: frame("context", { context: HelperContext }),
  /**
   * Which entries does this pi have after `since`, or in total if it does not know that one? Reply: {@link
   * EntriesReply}.
   */
  entries: frame("entries", { since: Type.Optional(name(128)) }),
  /**
   * Tell the extensions that no client can answer this dialog: it is dismissed after the reply. `title`: its first 200
   * characters. Reply: an empty object.
   */
  dialog: frame("dialog", {
    requestId: Type.String(),
    method: DialogMethod,
    title: Type.String(),
    reason: Type.Literal("no_responder"),
  }),
  /** Tell the user of an error. Reply: an empty object. */
  notify: frame("notify", { text: Type.String({ maxLength: 2_000 }) }),
  /**
   * Use this configuration from now on; null: no part is active. The composition of a session's prompt does not change
   * after its start. `isForNext`: it is for the session that is about to replace the current one. Reply: an empty
   * object.
   */
  configure: frame("configure", {
    parts: Type.Union([Type.Null(), parts]),
    isForNext: Type.Optional(Type.Boolean()),
  }),
  /** A question to a part, or an order. Reply: what the part answers, or its refusal as {@link AskRefusal}. */
  ask: frame("ask", { about: name(256), params: Type.Optional(Type.Unknown()) }),
  /** Is the helper there, and what is it doing? Reply: {@link PingReply}. */
  ping: frame("ping", {}),
  /**
   * The frame is in this file (0600). The helper reads it, checks length and hash, deletes it, and acts on the frame.
   * The frame in it has the same `rid`, and one reply answers both.
   */
  file: frame("file", {
    path: Type.String({ pattern: "^[^\\u0000]+$" }),
    bytes: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }),
    sha256: Type.String({ pattern: "^[0-9a-f]{64}$" }),
  }),
};

type InwardFrames = typeof inwardFrames;

export type InwardFrame = { [K in keyof InwardFrames]: Static<InwardFrames[K]> }[keyof InwardFrames];

export const HoldReply = Type.Object({
  held: ids,
  inserted: ids,
  /** Pushes that the helper refuses permanently. */
  refused: Type.Optional(
    readonlyArray(Type.Object({ deliveryId: DeliveryId, why: Type.String() }), { maxItems: 10_000 }),
  ),
  /**
   * Whether a run is on, or was just started by this hand-over: `agent_settled` follows. pi may be busy without one, as
   * in a compaction on request, and the run of a prompt counts from its `agent_start` on.
   */
  running: Type.Boolean(),
});
export type HoldReply = Static<typeof HoldReply>;

export const ReleaseReply = Type.Object({
  /** Pushes that will not be inserted: released, or unknown. */
  released: ids,
  /** Pushes in the transcript. */
  tooLate: ids,
  /** Pushes offered to pi: `inserted` or `dropped` follows for each. */
  pending: ids,
});
export type ReleaseReply = Static<typeof ReleaseReply>;

export const CarryReply = Type.Object({
  /** Whether a run was started. False also if it is done later. */
  started: Type.Boolean(),
  /** The push that was named is on a branch that the session has left: no request can carry it, so nothing was done. */
  isOffBranch: Type.Optional(Type.Boolean()),
});
export type CarryReply = Static<typeof CarryReply>;

export const EntriesReply = Type.Object({
  /** In order; the newest of them. */
  ids: readonlyArray(Type.String(), { maxItems: 10_000 }),
  /** Leaf of the branch, which the next entry follows. Absent if there is none. */
  leafId: Type.Optional(Type.String()),
});
export type EntriesReply = Static<typeof EntriesReply>;

export interface ContextReply {
  /** Hash of the context of the next request. */
  readonly hash: string;
  /** How many messages the helper was given with it. */
  readonly messages: number;
}

/** The reply to an `ask` that the part refuses by a name of the error catalogue. */
export interface AskRefusal {
  readonly refused: string;
  readonly message: string;
  readonly data?: Readonly<Record<string, unknown>>;
}

export interface PingReply {
  readonly running: boolean;
  readonly held: readonly string[];
}
