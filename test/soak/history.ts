import type { Delivery, DeliveryState } from "../../protocol/delivery.ts";
import type { ApiName } from "../../provider/dialect.ts";
import type { Outcome } from "../../provider/log.ts";

// The records of a soak run from three sides: the daemon's reports, the provider's log, pi's session files.

/** What a client pushed, and how the daemon answered. */
export interface PushFact {
  readonly id: string;
  /** The soak's own name of the session. */
  readonly session: string;
  /** The exact text of the push's text block; begins with its marker, and is unique in the run. */
  readonly text: string;
  /** The API that pi uses for the session's model. */
  readonly api: SoakApi;
  /** `unsure`: the connection ended before the answer, and the call was not repeated. */
  readonly answer: "accepted" | "refused" | "unsure";
}

/** `eager`: an extension's own provider, which says `start` before its request is answered. */
export type SoakApi = ApiName | "eager";

/** A record of a delivery as a client received it. */
export interface Sighting {
  readonly at: number;
  /** When its call was sent; absent for a notification. */
  readonly askedAt?: number;
  readonly from: string;
  /** The life of the daemon that reported it. */
  readonly life: number;
  readonly delivery: Delivery;
}

/** A statement about a delivery in the result of another call: a cancel, an abort. */
export interface Claim {
  readonly deliveryId: string;
  readonly state: DeliveryState;
  readonly from: string;
}

/** A model request as the provider got it. Times are milliseconds since the epoch. */
export interface RequestFact {
  readonly n: number;
  readonly session: string;
  readonly receivedAt: number;
  /** How often each push's exact text occurs as a separate user text. */
  readonly carried: Readonly<Record<string, number>>;
  /** Pushes whose marker begins a text that is not the push's. */
  readonly altered: readonly string[];
  readonly violations: readonly string[];
  readonly status: number | undefined;
  readonly headersSentAt: number | undefined;
  readonly endedAt: number | undefined;
  readonly outcome: Outcome | undefined;
}

/** An entry of a session file that carries a push. */
export interface EntryFact {
  readonly deliveryId: string;
  readonly file: string;
  readonly entryId: string;
  readonly onActiveBranch: boolean;
}

/** A process that was killed, after which some receipts cannot be known. */
export interface Death {
  readonly at: number;
  /** Absent: the daemon's, which all sessions share. */
  readonly session?: string;
  /**
   * The sessions whose file did not exist yet. pi writes the file of a session created by an extension only at its
   * first message of a user or an assistant; until then its death loses everything in memory.
   */
  readonly unwritten?: readonly string[];
}

export interface History {
  /** When the daemon has reported a damaged store: its earlier knowledge may be lost or outdated. */
  readonly damages: readonly number[];
  /**
   * When the ends of the store and of its log were damaged without a report: as after a loss of power, what was written
   * but not synced may be gone.
   */
  readonly cuts: readonly number[];
  readonly pushes: readonly PushFact[];
  /** In the order of their arrival. */
  readonly sightings: readonly Sighting[];
  readonly claims: readonly Claim[];
  readonly requests: readonly RequestFact[];
  readonly entries: readonly EntryFact[];
  readonly deaths: readonly Death[];
  /** The final record of each push, requested after all had settled; undefined: unknown to the daemon. */
  readonly final: ReadonlyMap<string, Delivery | undefined>;
}

/**
 * - `wrong`: a receipt is false. `lost`: an accepted push is neither in the transcript nor reported as not
 *   delivered, or both. `doubled`: it occurs twice.
 * - `seq`: a session's numbers have a hole or are used twice. `process`: a process was left running.
 * - `protocol`: the daemon violated the protocol in another way.
 */
export type ViolationKind = "wrong" | "lost" | "doubled" | "seq" | "process" | "protocol";

export interface Violation {
  readonly kind: ViolationKind;
  readonly message: string;
  readonly deliveryId?: string;
  readonly session?: string;
}
