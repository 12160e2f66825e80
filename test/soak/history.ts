import type { Delivery, DeliveryState } from "../../protocol/delivery.ts";
import type { ApiName } from "../../provider/dialect.ts";
import type { Outcome } from "../../provider/log.ts";

// What a run of the soak has seen, from three sides: the daemon's word, the provider's log, pi's session files.

/** What a client pushed, and how the daemon answered. */
export interface PushFact {
  readonly id: string;
  /** The soak's own name of the session. */
  readonly session: string;
  /** The exact text of the push's text block; begins with its marker, and no other text of the run has that. */
  readonly text: string;
  /** The api that pi uses for the session's model. */
  readonly api: SoakApi;
  /** `unsure`: the connection ended before the answer, and it was not asked again. */
  readonly answer: "accepted" | "refused" | "unsure";
}

/** `eager`: an extension's own provider, which says `start` before its request is answered. */
export type SoakApi = ApiName | "eager";

/** A record of a delivery, as some client got it. */
export interface Sighting {
  readonly at: number;
  /** When the call was sent whose answer it is; absent for a notification. */
  readonly askedAt?: number;
  readonly from: string;
  /** Which life of the daemon said it. */
  readonly life: number;
  readonly delivery: Delivery;
}

/** What the result of another call said about a delivery: a cancel's, an abort's. */
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
  /** How often each push's exact text stands there as a user's text of its own. */
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
   * The sessions whose file was not there yet. pi writes the file of a session that an extension has made only at its
   * first message of a user or an assistant, and what it has in memory dies with it.
   */
  readonly unwritten?: readonly string[];
}

export interface History {
  /** When the daemon has reported that its store was damaged: what it knew before may be lost or out of date. */
  readonly damages: readonly number[];
  readonly pushes: readonly PushFact[];
  /** In the order of their arrival. */
  readonly sightings: readonly Sighting[];
  readonly claims: readonly Claim[];
  readonly requests: readonly RequestFact[];
  readonly entries: readonly EntryFact[];
  readonly deaths: readonly Death[];
  /** The last word about each push, asked for when all had settled; undefined: the daemon does not know it. */
  readonly final: ReadonlyMap<string, Delivery | undefined>;
}

/**
 * - `wrong`: a receipt says what is not so. `lost`: an accepted push is neither in the transcript nor reported as not
 *   delivered, or both. `doubled`: it is there twice.
 * - `seq`: a session's numbers have a hole or are used twice. `process`: something was left running.
 * - `protocol`: the daemon broke its word in another way.
 */
export type ViolationKind = "wrong" | "lost" | "doubled" | "seq" | "process" | "protocol";

export interface Violation {
  readonly kind: ViolationKind;
  readonly message: string;
  readonly deliveryId?: string;
  readonly session?: string;
}
