import type { By } from "../../protocol/client-identity.ts";
import { isReading, type MethodRow } from "../../protocol/method-row.ts";
import { type MethodName, methods } from "../../protocol/methods.ts";
import type { Call, Handlers, Peer } from "./call.ts";
import type { Grant } from "./grant.ts";

export interface GovernanceOptions {
  /** Who is behind a connection. */
  readonly by: (peer: Peer | undefined) => By | undefined;
  /** Throws `not_controller` when the client may not change anything in the session. */
  readonly check: (sessionId: string, by: By | undefined) => void;
  /** To which session something belongs that a param names. Undefined: to none, or it is not there. */
  readonly sessionOf: Readonly<Record<SessionParam, (id: string) => string | undefined>>;
}

/** The params by which a method says which session it is about. */
export const sessionParams = ["sessionId", "deliveryId", "dialogId", "promptId"] as const;
export type SessionParam = (typeof sessionParams)[number];

/** Those that change something, and nothing in a session that is there; or that are about control itself. */
const ungoverned: ReadonlySet<string> = new Set<MethodName>([
  "session/create",
  "session/open",
  "session/acquireControl",
  "session/releaseControl",
  "token/create",
  "token/rotate",
  "token/revoke",
]);

/**
 * Whether calls of a method are refused to those who may only look on: it changes something, which is everything that its
 * row in the method table does not call reading.
 */
export function isGoverned(method: MethodName): boolean {
  return !isReading(methods[method] as MethodRow) && !ungoverned.has(method);
}

/**
 * Says with each call who makes it, and refuses those that change something in a session that another client controls
 * alone. The one place where this is decided, for all methods of the table.
 */
export function governed(handlers: Handlers, { by, check, sessionOf }: GovernanceOptions): Handlers {
  type AnyHandler = (params: Readonly<Record<string, unknown>>, call: Call) => unknown;

  const wrap = (method: MethodName, handler: AnyHandler): AnyHandler => {
    const isChanging = isGoverned(method);
    return (params, call) => {
      const caller = by(call.peer);
      if (isChanging && !onlyReads(method, params)) {
        for (const name of sessionParams) {
          const id = params[name];
          const sessionId = typeof id === "string" ? sessionOf[name](id) : undefined;
          if (sessionId !== undefined) check(sessionId, caller);
        }
      }
      return handler(params, caller === undefined ? call : new SignedCall(call, caller));
    };
  };

  return Object.fromEntries(
    Object.entries(handlers).map(([method, handler]) => [method, wrap(method as MethodName, handler as never)]),
  ) as unknown as Handlers;
}

/** pi's own commands that only read: all whose name says so. */
export function onlyReads(method: MethodName, params: Readonly<Record<string, unknown>>): boolean {
  if (method !== "session/command") return false;
  const { type } = params["command"] as { readonly type: string };
  return type.startsWith("get_");
}

/** A call that says whose it is. Its signal is still made only when somebody looks at it. */
class SignedCall implements Call {
  readonly by: By;
  readonly #call: Call;

  constructor(call: Call, by: By) {
    this.#call = call;
    this.by = by;
  }

  get peer(): Peer {
    return this.#call.peer as Peer;
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

  /** Where the call underneath cannot say when it is answered, there is nothing to wait for. */
  get whenAnswered(): Call["whenAnswered"] {
    return this.#call.whenAnswered?.bind(this.#call);
  }
}
