import type { Static, TUnsafe } from "typebox";
import { Evidence, PayloadCheck } from "./delivery.ts";
import { DeliveryId } from "./ids.ts";
import { readonlyArray, Type } from "./json-schema.ts";
import { leftOutReasons, MAX_FORMER_TEXT_BYTES, MAX_HEADERS } from "./link.ts";
import { type NoticeData, type NoticeName, notices } from "./optimisation/notices.ts";
import { Composition } from "./provider.ts";

/**
 * The frames from the helper to the daemon. Other extensions in the same pi can write them too: they are untrusted, and
 * the daemon validates each with the schema of its kind. A daemon accepts fields that it does not know, and drops them.
 */

const closed = { additionalProperties: false } as const;

/** The moment that a frame reports, in Unix milliseconds: at most the latest that a `Date` can hold. */
const at = Type.Integer({ minimum: 0, maximum: 8_640_000_000_000_000 });
/** Of a push, a request or a pending item. Excludes `__proto__`, which can be an own key after `JSON.parse`. */
const Id = DeliveryId;
/** A session holds far fewer pushes. */
const ids = readonlyArray(Id, { maxItems: 10_000 });
const count = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
const integer = Type.Integer({ minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER });
const modelName = Type.String({ maxLength: 256 });
const sha256 = Type.String({ pattern: "^[0-9a-f]{64}$" });

/** What a body of a request has, the message list or the payload, as JSON. */
export const BodyFacts = Type.Object(
  {
    bytes: count,
    /** Whether it was written to its file. */
    isLeft: Type.Boolean(),
  },
  closed,
);
export type BodyFacts = Static<typeof BodyFacts>;

/** How a request to the provider ended. */
const ending = {
  outcome: Type.Enum(["delivered", "failed", "aborted"]),
  /** Present with `delivered`. */
  evidence: Type.Optional(Evidence),
  status: Type.Optional(integer),
  /** The provider's or pi's words, with `failed` and `aborted`. */
  error: Type.Optional(Type.String()),
};

/** Size and hash come together. */
const payloadFacts = { payloadBytes: Type.Optional(count), payloadSha256: Type.Optional(sha256) };
const factsTogether = { payloadBytes: ["payloadSha256"], payloadSha256: ["payloadBytes"] };

type NoticeFrame = {
  readonly [N in NoticeName]: {
    readonly kind: "notice";
    readonly at: number;
    readonly name: N;
    readonly data: NoticeData[N];
  };
}[NoticeName];

export const outwardFrames = {
  /** The helper is there. Sent in every `session_start`: at start, and after every replacement or reload of the session. */
  hello: Type.Object(
    {
      kind: Type.Literal("hello"),
      at,
      /** `LINK_VERSION` or `NO_LINK`. */
      link: integer,
      /**
       * Name of the command that carries inward frames, without the slash. The same for the life of the process. The
       * daemon sends `/<command> <frame>` as a prompt: any other text here would be sent as a message of the user.
       */
      command: Type.String({ pattern: "^[0-9A-Za-z][0-9A-Za-z_-]{7,127}$" }),
      reason: Type.String(),
      sessionId: Type.String(),
      sessionFile: Type.Optional(Type.String()),
    },
    closed,
  ),
  reply: Type.Object(
    {
      kind: Type.Literal("reply"),
      at,
      rid: Type.String(),
      ok: Type.Literal(true),
      data: Type.Optional(Type.Unknown()),
    },
    closed,
  ),
  /** A `reply` that refuses the frame. */
  refusal: Type.Object(
    { kind: Type.Literal("reply"), at, rid: Type.String(), ok: Type.Literal(false), error: Type.String() },
    closed,
  ),
  /** These pushes are now in the transcript. */
  inserted: Type.Object({ kind: Type.Literal("inserted"), at, deliveryIds: ids }, closed),
  /** An attempt: a request to the provider is being made, and these pushes are in its message list. */
  prepared: Type.Object({ kind: Type.Literal("prepared"), at, requestId: Id, deliveryIds: ids }, closed),
  /** How an attempt ended. Exactly one for each `prepared`. */
  verdict: Type.Object(
    {
      kind: Type.Literal("verdict"),
      at,
      requestId: Id,
      ...ending,
      /** For each push of the attempt, whether its content was found in the payload. `unverified` ones are not delivered. */
      payload: Type.Record(Type.String(), PayloadCheck, { propertyNames: Id, maxProperties: 10_000 }),
    },
    closed,
  ),
  /** The assistant's message to a delivered attempt is complete. */
  answered: Type.Object({ kind: Type.Literal("answered"), at, requestId: Id, deliveryIds: ids }, closed),
  /** A request leaves for the provider, with pushes or without. Only while the daemon watches. */
  request: Type.Object(
    {
      kind: Type.Literal("request"),
      at,
      requestId: Id,
      deliveryIds: ids,
      messageCount: count,
      model: Type.Optional(Type.Object({ provider: modelName, id: modelName }, closed)),
      composition: Type.Optional(Composition),
      ...payloadFacts,
      messages: Type.Optional(BodyFacts),
      payload: Type.Optional(BodyFacts),
    },
    { ...closed, dependencies: factsTogether },
  ),
  /** How a request ended. Exactly one for each `request`, after the attempt's own `verdict`. */
  requestEnd: Type.Object(
    {
      kind: Type.Literal("requestEnd"),
      at,
      requestId: Id,
      ...ending,
      latencyMs: count,
      /** Without secrets. At most {@link MAX_HEADER_CHARS} in total. */
      headers: Type.Optional(
        Type.Record(Type.String(), Type.String(), {
          // Excludes `__proto__`.
          propertyNames: { pattern: "^[0-9a-z][!#$%&'*+.^_`|~0-9a-z-]{0,127}$" },
          maxProperties: MAX_HEADERS,
        }),
      ),
      headersOmitted: Type.Optional(count),
      /** The last payload sent, if it differs. */
      ...payloadFacts,
    },
    {
      ...closed,
      dependencies: factsTogether,
      anyOf: [{ required: ["evidence"] }, { properties: { outcome: { enum: ["failed", "aborted"] } } }],
    },
  ),
  /**
   * What a file has before the tool `write` replaces it; null: it does not exist. Sent before the tool's work, only while
   * the daemon watches, and not for a text that is unknown. At most {@link MAX_FORMER_TEXT_BYTES} in UTF-8.
   */
  formerText: Type.Object(
    {
      kind: Type.Literal("formerText"),
      at,
      toolCallId: Type.String({ minLength: 1, maxLength: 1_024 }),
      path: Type.String({ maxLength: 4_096, pattern: "^/[^\\u0000]*$" }),
      text: Type.Union([Type.String({ maxLength: MAX_FORMER_TEXT_BYTES }), Type.Null()]),
    },
    closed,
  ),
  /** Pushes that a request omits, or that a compaction has removed. Sent again for each such request. */
  leftOut: Type.Object(
    { kind: Type.Literal("leftOut"), at, deliveryIds: ids, reason: Type.Enum(leftOutReasons) },
    closed,
  ),
  /** Held pushes that are released: by an abort (`onAbort: "drop"`), or by a `release` that had to wait. */
  dropped: Type.Object(
    { kind: Type.Literal("dropped"), at, deliveryIds: ids, reason: Type.Enum(["abort", "released"]) },
    closed,
  ),
  /** pi has settled. Held pushes left by an abort wait for the next run. */
  settled: Type.Object(
    { kind: Type.Literal("settled"), at, aborted: Type.Boolean(), failed: Type.Boolean(), held: ids },
    closed,
  ),
  /** What extensions have in the background, all of it, at each change. For display: the daemon cuts long texts. */
  pending: Type.Object(
    {
      kind: Type.Literal("pending"),
      at,
      pending: readonlyArray(
        Type.Object(
          {
            id: Id,
            label: Type.String(),
            state: Type.Enum(["running", "delivering", "failed"]),
            startedAt: at,
            error: Type.Optional(Type.String()),
          },
          closed,
        ),
        { maxItems: 100 },
      ),
    },
    closed,
  ),
  /** A part notifies the session's subscribers. Its name has the schema of its data. */
  notice: Type.Object(
    {
      kind: Type.Literal("notice"),
      at,
      name: Type.Enum(Object.keys(notices) as NoticeName[]),
      data: Type.Unknown(),
    },
    closed,
  ) as unknown as TUnsafe<NoticeFrame>,
  /** The user requests a reload of the parts' configuration. */
  reload: Type.Object({ kind: Type.Literal("reload"), at }, closed),
  /** A line for the daemon's log, from a part in debug mode. `facts`: at most 8 KiB as JSON. */
  debug: Type.Object(
    { kind: Type.Literal("debug"), at, part: Type.String(), facts: Type.Record(Type.String(), Type.Unknown()) },
    closed,
  ),
  /** A part of the helper threw. The model call went on without it. */
  fault: Type.Object(
    {
      kind: Type.Literal("fault"),
      at,
      where: Type.String(),
      error: Type.String(),
      /** The part, if it has a name; the session's subscribers are notified. */
      part: Type.Optional(Type.String()),
    },
    closed,
  ),
};

type OutwardFrames = typeof outwardFrames;

export type OutwardFrame = { [K in keyof OutwardFrames]: Static<OutwardFrames[K]> }[keyof OutwardFrames];
