/**
 * The frames between the daemon and the helper extension inside pi. Internal: not part of the clients' protocol.
 *
 * Inward a frame is the argument of an extension command: a `prompt` record whose message is `/<command> <frame>`.
 * pi runs it at once in every state of the agent. Outward a frame is the text of `ctx.ui.setStatus(statusKey, …)`,
 * which reaches stdout in exact order with pi's own events.
 *
 * This module is loaded inside every pi: it imports nothing at run time.
 */

import type { Content } from "./content.ts";
import type { DeliverAs, Evidence, PayloadCheck } from "./delivery.ts";
import type { DialogMethod } from "./dialog.ts";
import type { HelperContext } from "./link-context.ts";
import type { OptimisationConfig } from "./optimisation/config.ts";
import type { NoticeData, NoticeName } from "./optimisation/notices.ts";
import type { PendingItem } from "./pending.ts";
import type { ProviderLevel } from "./provider-level.ts";
import type { PruningConfig } from "./pruning/config.ts";
import type { ModelRef } from "./session.ts";

/** The version of these frames. Helper and daemon must use the same version. */
export const LINK_VERSION = 1;

/** Names a 0600 file with the {@link HelperConfig}. The helper reads it, deletes it and removes the variable. */
export const HELPER_CONFIG_ENV = "PI_RPCD_HELPER_CONFIG";

/** Marks every process that descends from a child; its value is the child's id, which is no secret. */
export const CHILD_MARKER_ENV = "PI_RPCD_CHILD";

/** Key in a custom message's `details` that holds the delivery's identity, as `{deliveryId}`. */
export const DELIVERY_MARK = "pi-rpcd";

/** `customType` of a carrier: a message that only starts a run and is left out of the request. */
export const CARRIER_TYPE = "pi-rpcd.carrier";

/**
 * `customType` of the entry that records a move of pi's leaf in the session's file, because pi keeps it only in memory.
 */
export const NAVIGATED_TYPE = "pi-rpcd.navigated";

/** Bounds of the headers in a `requestEnd`: how many, and the UTF-16 units of all names and values together. */
export const MAX_HEADERS = 64;
export const MAX_HEADER_CHARS = 16 * 1024;

/** Larger inward frames use a file, because pi needs quadratic time for large records. */
export const MAX_INLINE_FRAME_BYTES = 256 * 1024;

export interface HelperConfig {
  readonly link: number;
  /** The status key of this child's outward frames. Unguessable, so that no other extension can write them by accident. */
  readonly statusKey: string;
  /**
   * A `context` frame follows. Requests wait for it for this many milliseconds, even if an extension starts a run
   * immediately; after that they are made without it. Absent: none follows.
   */
  readonly contextWithinMs?: number;
  /** This pi only answers queries: a run started by an extension is aborted before its request. */
  readonly isOnlyAsked?: boolean;
  /** `ctx.ui.custom()` rejects. Absent: it resolves with `undefined`, as pi documents for RPC mode. */
  readonly customUi?: "throw";
  /** Absent: no part is active. */
  readonly parts?: PartsConfig;
  /** Variables of pi's environment that are for its start alone. */
  readonly startEnvironment?: StartEnvironment;
}

/** By name: the value while pi loads its extensions, and the one to restore then. Without `before` the variable is removed. */
export type StartEnvironment = Readonly<Record<string, { readonly value: string; readonly before?: string }>>;

/** Configuration of the parts inside pi: optimisation and pruning. */
export interface PartsConfig {
  readonly optimisation: OptimisationConfig;
  /** Absent: it is off. */
  readonly pruning?: PruningConfig;
  /**
   * Directory (mode 0700) of texts that left the transcript. Files have mode 0600 and are named by their SHA-256. The
   * daemon removes them.
   */
  readonly spillDirectory: string;
  /** The session's labels, for conditions. */
  readonly labels: Readonly<Record<string, string>>;
}

/** An open push, with what the helper needs to hand it over. */
export interface HeldPush {
  readonly deliveryId: string;
  readonly customType: string;
  readonly content: Content;
  readonly display: boolean;
  readonly details?: Readonly<Record<string, unknown>>;
  readonly deliverAs: DeliverAs;
  readonly triggerTurn: boolean;
  /** Effect of an aborted run while it is held. */
  readonly onAbort: "park" | "drop";
  /** Left by an aborted or failed run: goes with the next run or prompt, but starts none. */
  readonly parked?: boolean;
}

/**
 * Frames from the daemon. Each is answered by exactly one `reply` with its `rid`. A frame for a session that is no
 * longer in this pi is refused.
 */
export type InwardFrame = InwardBody & {
  /** The session that it is for, as named by the last `hello`. */
  readonly session?: string;
};

type InwardBody =
  /**
   * Hold these pushes and hand each over when it is due. Idempotent: a held push is unchanged, and one on the active
   * branch is answered as `inserted`. Reply: {@link HoldReply}.
   */
  | {
      readonly kind: "hold";
      readonly rid: string;
      readonly pushes: readonly HeldPush[];
      /** `later`: a prompt is about to follow, so no push starts a run of its own now. Default: `now`. */
      readonly handOver?: "now" | "later";
    }
  /**
   * Release these pushes if they are still held. One that was offered to pi and is not in the transcript yet is either
   * released once pi proves not to have it, or reported as inserted. Reply: {@link ReleaseReply}.
   */
  | { readonly kind: "release"; readonly rid: string; readonly deliveryIds: readonly string[] }
  /**
   * A prompt follows: append the held pushes that wait for one (`nextTurn`, and what an abort or a failure has left)
   * without starting a run. Reply: {@link HoldReply} of what was appended and what stays held.
   */
  | { readonly kind: "beforePrompt"; readonly rid: string }
  /**
   * Make a request that carries undelivered pushes of the transcript and held pushes: while idle, a carrier starts a
   * run; a current run continues; while pi is busy otherwise, it is done later. Has no effect if the push of
   * `deliveryId` is on another branch. Reply: {@link CarryReply}.
   */
  | { readonly kind: "carry"; readonly rid: string; readonly deliveryId?: string }
  /**
   * Is a message that pi has taken out of its queue of users' messages still on its way into the transcript? Reply, when
   * none is: an empty object.
   */
  | { readonly kind: "drained"; readonly rid: string }
  /** Report requests to the provider at this level, starting with the next. Reply: an empty object. */
  | {
      readonly kind: "watch";
      readonly rid: string;
      readonly provider: ProviderLevel;
      /**
       * Prefix of the body files `<bodyPrefix><requestId>.messages` and `.payload`: JSON, mode 0600. The daemon deletes
       * them.
       */
      readonly bodyPrefix: string;
      readonly maxBodyBytes: number;
    }
  /**
   * Put this context before the conversation in each request from now on, while the conversation is in this process. A
   * context with the same hash stays, as compactions have shortened it; another one is replaced. Reply: {@link
   * ContextReply}.
   */
  | { readonly kind: "context"; readonly rid: string; readonly context: HelperContext }
  /**
   * Which entries does this pi have after `since`, or in total if it does not know that one? Reply: {@link
   * EntriesReply}.
   */
  | { readonly kind: "entries"; readonly rid: string; readonly since?: string }
  /**
   * Tell the extensions that no client can answer this dialog: it is dismissed after the reply. `title`: its first 200
   * characters. Reply: an empty object.
   */
  | {
      readonly kind: "dialog";
      readonly rid: string;
      readonly requestId: string;
      readonly method: DialogMethod;
      readonly title: string;
      readonly reason: "no_responder";
    }
  /** Tell the user of an error, of at most 2,000 characters. Reply: an empty object. */
  | { readonly kind: "notify"; readonly rid: string; readonly text: string }
  /**
   * Use this configuration from now on; null: no part is active. The composition of a session's prompt does not change
   * after its start. `isForNext`: it is for the session that is about to replace the current one. Reply: an empty
   * object.
   */
  | {
      readonly kind: "configure";
      readonly rid: string;
      readonly parts: PartsConfig | null;
      readonly isForNext?: boolean;
    }
  /** A question to a part, or an order. Reply: what the part answers, or its refusal as {@link AskRefusal}. */
  | { readonly kind: "ask"; readonly rid: string; readonly about: string; readonly params: unknown }
  /** Is the helper there, and what is it doing? Reply: {@link PingReply}. */
  | { readonly kind: "ping"; readonly rid: string }
  /**
   * The frame is in this file (0600). The helper reads it, checks length and hash, deletes it, and acts on the frame.
   * The frame in it has the same `rid`, and one reply answers both.
   */
  | {
      readonly kind: "file";
      readonly rid: string;
      readonly path: string;
      readonly bytes: number;
      readonly sha256: string;
    };

export interface HoldReply {
  readonly held: readonly string[];
  readonly inserted: readonly string[];
  /** Pushes that the helper refuses permanently. */
  readonly refused?: readonly { readonly deliveryId: string; readonly why: string }[];
  /**
   * Whether a run is on, or was just started by this hand-over: `agent_settled` follows. pi may be busy without one, as
   * in a compaction on request, and the run of a prompt counts from its `agent_start` on.
   */
  readonly running: boolean;
}

export interface ReleaseReply {
  /** Pushes that will not be inserted: released, or unknown. */
  readonly released: readonly string[];
  /** Pushes in the transcript. */
  readonly tooLate: readonly string[];
  /** Pushes offered to pi: `inserted` or `dropped` follows for each. */
  readonly pending: readonly string[];
}

export interface CarryReply {
  /** Whether a run was started. False also if it is done later. */
  readonly started: boolean;
  /** The push that was named is on a branch that the session has left: no request can carry it, so nothing was done. */
  readonly isOffBranch?: boolean;
}

export interface ContextReply {
  /** Hash of the context of the next request. */
  readonly hash: string;
  /** How many messages the helper was given with it. */
  readonly messages: number;
}

export interface EntriesReply {
  /** In order; at most the 10,000 newest. */
  readonly ids: readonly string[];
  /** Leaf of the branch, which the next entry follows. Absent if there is none. */
  readonly leafId?: string;
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

/** Why a request leaves out a push of the session. */
export type LeftOutReason = "compacted" | "session_replaced" | "removed_by_extension" | "off_branch";

/**
 * Whether no later request can have the push. Otherwise its entry is in the session, and a later request can have it
 * again.
 */
export function isLeftOutForGood(reason: LeftOutReason): boolean {
  return reason === "compacted" || reason === "session_replaced";
}

/** What a body of a request has, the message list or the payload, as JSON. */
export interface BodyFacts {
  readonly bytes: number;
  /** Whether it was written to its file. */
  readonly isLeft: boolean;
}

/** Frames from the helper. `at` is Unix milliseconds of the moment that the frame reports. */
export type OutwardFrame =
  /** The helper is there. Sent in every `session_start`: at start, and after every replacement or reload of the session. */
  | {
      readonly kind: "hello";
      readonly at: number;
      readonly link: number;
      /** Name of the command that carries inward frames, without the slash. The same for the life of the process. */
      readonly command: string;
      readonly reason: string;
      readonly sessionId: string;
      readonly sessionFile?: string;
    }
  | { readonly kind: "reply"; readonly at: number; readonly rid: string; readonly ok: true; readonly data: unknown }
  | { readonly kind: "reply"; readonly at: number; readonly rid: string; readonly ok: false; readonly error: string }
  /** These pushes are now in the transcript. */
  | { readonly kind: "inserted"; readonly at: number; readonly deliveryIds: readonly string[] }
  /** An attempt: a request to the provider is being made, and these pushes are in its message list. */
  | {
      readonly kind: "prepared";
      readonly at: number;
      readonly requestId: string;
      readonly deliveryIds: readonly string[];
    }
  /** How an attempt ended. Exactly one for each `prepared`. */
  | {
      readonly kind: "verdict";
      readonly at: number;
      readonly requestId: string;
      readonly outcome: "delivered" | "failed" | "aborted";
      /** Present with `delivered`. */
      readonly evidence?: Evidence;
      readonly status?: number;
      /** The provider's or pi's words, with `failed` and `aborted`. */
      readonly error?: string;
      /** For each push of the attempt, whether its content was found in the payload. `unverified` ones are not delivered. */
      readonly payload: Readonly<Record<string, PayloadCheck>>;
    }
  /** The assistant's message to a delivered attempt is complete. */
  | {
      readonly kind: "answered";
      readonly at: number;
      readonly requestId: string;
      readonly deliveryIds: readonly string[];
    }
  /** A request leaves for the provider, with pushes or without. Only while the daemon watches. */
  | {
      readonly kind: "request";
      readonly at: number;
      readonly requestId: string;
      readonly deliveryIds: readonly string[];
      readonly messageCount: number;
      readonly model?: ModelRef;
      readonly payloadBytes?: number;
      readonly payloadSha256?: string;
      readonly messages?: BodyFacts;
      readonly payload?: BodyFacts;
    }
  /** How a request ended. Exactly one for each `request`, after the attempt's own `verdict`. */
  | {
      readonly kind: "requestEnd";
      readonly at: number;
      readonly requestId: string;
      readonly outcome: "delivered" | "failed" | "aborted";
      /** Present with `delivered`. */
      readonly evidence?: Evidence;
      readonly status?: number;
      readonly error?: string;
      readonly latencyMs: number;
      /** Without secrets. */
      readonly headers?: Readonly<Record<string, string>>;
      readonly headersOmitted?: number;
      /** The last payload sent, if it differs. */
      readonly payloadBytes?: number;
      readonly payloadSha256?: string;
    }
  /** Pushes that a request omits, or that a compaction has removed. Sent again for each such request. */
  | {
      readonly kind: "leftOut";
      readonly at: number;
      readonly deliveryIds: readonly string[];
      readonly reason: LeftOutReason;
    }
  /** Held pushes that are released: by an abort (`onAbort: "drop"`), or by a `release` that had to wait. */
  | {
      readonly kind: "dropped";
      readonly at: number;
      readonly deliveryIds: readonly string[];
      readonly reason: "abort" | "released";
    }
  /** pi has settled. Held pushes left by an abort wait for the next run. */
  | {
      readonly kind: "settled";
      readonly at: number;
      readonly aborted: boolean;
      readonly failed: boolean;
      readonly held: readonly string[];
    }
  /** What extensions have in the background, all of it, at each change. */
  | { readonly kind: "pending"; readonly at: number; readonly pending: readonly PendingItem[] }
  /** A part notifies the session's subscribers. */
  | {
      readonly [N in NoticeName]: {
        readonly kind: "notice";
        readonly at: number;
        readonly name: N;
        readonly data: NoticeData[N];
      };
    }[NoticeName]
  /** The user requests a reload of the parts' configuration. */
  | { readonly kind: "reload"; readonly at: number }
  /** A line for the daemon's log, from a part in debug mode. `facts`: at most 8 KiB as JSON. */
  | {
      readonly kind: "debug";
      readonly at: number;
      readonly part: string;
      readonly facts: Readonly<Record<string, unknown>>;
    }
  /** A part of the helper threw. The model call went on without it. */
  | {
      readonly kind: "fault";
      readonly at: number;
      readonly where: string;
      readonly error: string;
      /** The part, if it has a name; the session's subscribers are notified. */
      readonly part?: string;
    };
