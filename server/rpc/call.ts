import type { By } from "../../protocol/client-identity.ts";
import { WireError } from "../../protocol/errors.ts";
import type { MethodRow } from "../../protocol/method-row.ts";
import type { MethodName, Params, Result } from "../../protocol/methods.ts";
import type { Frame } from "../frames/frame.ts";
import type { AnswerPlace } from "../log/answer-order.ts";
import type { Grant } from "./grant.ts";

/** The connection of a call, as handlers need it: the receiver of notifications until it ends. */
export interface Peer {
  /** Unique in the daemon's life; for logs and attribution. */
  readonly id: string;
  /** Aborted when the connection has ended. */
  readonly gone: AbortSignal;
  /**
   * Queues one frame, which is shared between peers. Never blocks and never throws; a peer that is gone or over its
   * budget loses the frame (and is closed).
   */
  send(frame: Frame): void;
  /**
   * Resolves when more can be sent at once, or when the peer has gone. A replay, which can send faster than the peer
   * reads, waits for it. Absent: there is no need to wait.
   */
  drained?(): Promise<void> | undefined;
  /**
   * Counts so many bytes that its conversation holds for it, such as messages that are not written yet, in addition to the
   * frames sent. Absent: they are not counted.
   */
  held?(bytes: number): void;
  /** Does work for the peer, such as reading a long log, in the turn of its token. Absent: there are no turns. */
  inTurn?<T>(work: () => T): T | Promise<Awaited<T>>;
}

/** The effect of a call with an idempotency key. If something has this id already, the call was made before. */
export interface Effect {
  readonly id: string;
  /** Resolves when the key is on disk. The call may not take effect before. */
  readonly reserved: Promise<void>;
  /** Whether an earlier attempt, of which no result is stored, may have had it. */
  readonly isRepeated: boolean;
}

/** What a handler knows of its call in addition to the params. */
export interface Call {
  /** Absent where nothing can be sent later (HTTP). */
  readonly peer?: Peer;
  /** The client. */
  readonly by?: By;
  /** What the token allows. Absent: every method that checks it throws. */
  readonly grant?: Grant | undefined;
  /** Whether the call came over the Unix socket. */
  readonly isLocal?: boolean;
  /** For a call with an idempotency key: the effect that it must have. */
  readonly effect?: Effect;
  /** Aborted when the answer is no longer needed: the peer has gone, or cancelled the call. */
  readonly signal: AbortSignal;
  /** Calls this when the answer has been given to the peer, so that what is sent then comes after the answer. */
  readonly whenAnswered?: ((then: () => void) => void) | undefined;
  /** The answer belongs there, among the notifications to the peer. Absent: it is given when it is known. */
  readonly answerAt?: ((place: AnswerPlace) => void) | undefined;
}

/** The peer that later notifications go to. Throws `invalid_request` if there is none. */
export function peerOf(
  { peer }: Call,
  why = "Subscriptions need a connection that stays open: use the WebSocket.",
): Peer {
  if (peer === undefined) throw new WireError("invalid_request", why);
  return peer;
}

/** The place after all frames that were sent to a peer before, also where they wait because it reads slowly. */
export function behindFrames(peer: Peer | undefined): AnswerPlace {
  return { fill: (answer) => answer !== undefined && peer?.send(answer) };
}

export type Handler<M extends MethodName> = (params: Params<M>, call: Call) => Promise<Result<M>> | Result<M>;

/** One handler for each row of the method table. */
export type Handlers = { readonly [M in MethodName]: Handler<M> };

/** The handlers of some rows of the table. */
export type HandlersOf<Rows extends object> = { readonly [M in keyof Rows & MethodName]: Handler<M> };

/** A method's name and the facts about it. */
export interface Method {
  readonly name: MethodName;
  readonly row: MethodRow;
}

/** A handler with the policies around it. Its params are valid. */
export type Bound<P extends object> = (params: P, call: Call) => unknown;

/**
 * Wraps one method when the method table is bound. It decides by the method's row, and returns `next` itself for a method
 * that it does not concern.
 */
export type Policy = <P extends object>(method: Method, next: Bound<P>) => Bound<P>;

const nothing: readonly (() => void)[] = [];

/** A call that is not answered yet. Its signal is created when it is first read: most handlers never read it. */
export class OpenCall implements Call {
  readonly peer?: Peer;
  readonly grant: Grant | undefined;
  readonly isLocal: boolean;
  #controller: AbortController | undefined;
  #cancelled: WireError | undefined;
  #answered: (() => void)[] | undefined;
  #place: AnswerPlace | undefined;
  #isOver = false;

  constructor(peer: Peer | undefined, grant: Grant | undefined, isLocal: boolean) {
    this.grant = grant;
    this.isLocal = isLocal;
    if (peer !== undefined) this.peer = peer;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#cancelled !== undefined) this.#controller.abort(this.#cancelled);
    }
    return this.#controller.signal;
  }

  whenAnswered(then: () => void): void {
    this.#answered ??= [];
    this.#answered.push(then);
  }

  answerAt(place: AnswerPlace): void {
    // A call that was cancelled is answered before pi answers.
    if (this.#isOver) place.fill(undefined);
    else this.#place = place;
  }

  /** The answer is known: takes where it belongs. */
  takePlace(): AnswerPlace | undefined {
    this.#isOver = true;
    return this.#place;
  }

  /** Takes the functions to call when the answer has been given. */
  takeAnswered(): readonly (() => void)[] {
    const answered = this.#answered ?? nothing;
    this.#answered = undefined;
    return answered;
  }

  cancel(why: WireError): void {
    this.#cancelled ??= why;
    this.#controller?.abort(this.#cancelled);
  }
}
