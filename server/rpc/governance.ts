import type { By } from "../../protocol/client-identity.ts";
import { isReading, type MethodRow, type SubjectKind, subjectsOf } from "../../protocol/method-row.ts";
import type { Call, Peer, Policy } from "./call.ts";
import type { Grant } from "./grant.ts";
import { paramOf, sendsQuery } from "./params.ts";

/** The session that something belongs to, by its id. Undefined: it does not exist, or no longer. */
export type SessionOf = Readonly<Record<SubjectKind, (id: string) => string | undefined>>;

export interface ControlOptions {
  /** Throws `not_controller` if the client may not change the session. */
  readonly check: (sessionId: string, by: By | undefined) => void;
  readonly sessionOf: SessionOf;
}

/** Adds the client of a connection to its calls. */
export function attribution(by: (peer: Peer) => By): Policy {
  return (_method, next) => (params, call) => {
    const { peer } = call;
    return next(params, peer === undefined ? call : new AttributedCall(call, peer, by(peer)));
  };
}

/** Whether calls of a method are refused to clients without control of an exclusive session: it changes something. */
export function isGoverned(row: MethodRow): boolean {
  return !isReading(row) && row.governed !== false && subjectsOf(row).length > 0;
}

/** Refuses calls that change something in a session that another client controls alone. */
export function control({ check, sessionOf }: ControlOptions): Policy {
  return ({ row }, next) => {
    if (!isGoverned(row)) return next;
    const subjects = subjectsOf(row);
    return (params, call) => {
      if (sendsQuery(row, params)) return next(params, call);
      for (const { kind, param } of subjects) {
        const id = paramOf(params, param);
        const sessionId = typeof id === "string" ? sessionOf[kind](id) : undefined;
        if (sessionId !== undefined) check(sessionId, call.by);
      }
      return next(params, call);
    };
  };
}

/** A call with its client. Like the call in it, it creates its signal only when it is read. */
class AttributedCall implements Call {
  readonly peer: Peer;
  readonly by: By;
  readonly #call: Call;

  constructor(call: Call, peer: Peer, by: By) {
    this.#call = call;
    this.peer = peer;
    this.by = by;
  }

  get grant(): Grant | undefined {
    return this.#call.grant;
  }

  get isLocal(): boolean {
    return this.#call.isLocal === true;
  }

  get signal(): AbortSignal {
    return this.#call.signal;
  }

  /** Absent if the call cannot say when it is answered. */
  get whenAnswered(): Call["whenAnswered"] {
    return this.#call.whenAnswered?.bind(this.#call);
  }

  get answerAt(): Call["answerAt"] {
    return this.#call.answerAt?.bind(this.#call);
  }
}
