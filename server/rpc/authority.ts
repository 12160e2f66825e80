import type { Capability } from "../../protocol/capability.ts";
import { type ErrorName, WireError } from "../../protocol/errors.ts";
import { idParam, type MethodRow, type Subject, type SubjectKind, subjectsOf } from "../../protocol/method-row.ts";
import { type MethodName, methods } from "../../protocol/methods.ts";
import { commandRoute } from "../../protocol/pi-commands.ts";
import type { SessionScope } from "../core/session-scope.ts";
import type { Policy } from "./call.ts";
import type { SessionOf } from "./governance.ts";
import type { Grant } from "./grant.ts";
import { commandType, localParam, paramNeeds, paramOf } from "./params.ts";

export interface AuthorityOptions {
  readonly sessionOf: SessionOf;
  /** Undefined: there is no such session, or it was closed. */
  readonly scopeOf: (sessionId: string) => SessionScope | undefined;
}

/** The errors with which the methods themselves say that something does not exist. */
const absent = {
  session: "session_not_found",
  delivery: "delivery_not_found",
  dialog: "dialog_not_found",
  prompt: "prompt_not_found",
} as const satisfies Readonly<Record<SubjectKind, ErrorName>>;

/**
 * Refuses what the caller's token does not allow: `unauthorized` if the token has ended, `forbidden` (`data.needs`) if it
 * lacks a capability or the call does not come over the Unix socket although it or a param needs that. To a token with limits, everything outside of them does not exist. Nothing in a call can change
 * the decision. This is the only place that decides it, for every method and every transport.
 */
export function authority(options: AuthorityOptions): Policy {
  return ({ name, row }, next) => {
    const subjects = subjectsOf(row).filter(({ isChosen }) => isChosen !== true);
    return (params, call) => {
      const { grant } = call;
      if (grant === undefined || grant.isEnded) throw ended();
      const needs = missing(row, params, grant);
      if (needs !== undefined) throw lacking(name, needs, grant);
      if (call.isLocal !== true) {
        const param = localParam(row, params);
        if (row.isLocal === true || param !== undefined) throw notLocal(name, param);
      }
      const answer = grant.isLimited
        ? insideOnly(subjects, params, { ...options, grant, make: () => next(params, call) })
        : next(params, call);
      const endsItself = row.endsToken !== undefined && paramOf(params, row.endsToken) === grant.name;
      if (endsItself || !(answer instanceof Promise)) return answer;
      return answer.finally(() => {
        // Nothing that happened in the meantime is revealed to a token that has ended.
        if (grant.isEnded) throw ended();
      });
    };
  };
}

/** The first capability that a call needs and the token lacks. */
function missing(row: MethodRow, params: object, grant: Grant): Capability | undefined {
  if (grant.allows("admin")) return undefined;
  return needed(row, params, grant).find((capability) => !grant.allows(capability));
}

function needed(row: MethodRow, params: object, grant: Grant): readonly Capability[] {
  const command = commandType(row, params);
  return [
    ...(row.capability === "any" ? [] : [row.capability]),
    ...paramNeeds(row, params),
    ...(command === undefined ? [] : [commandNeeds(command)]),
    // A setting that all sessions share belongs to none of the sessions within the limits.
    ...(grant.isLimited && paramOf(params, "confirmShared") === true ? (["admin"] as const) : []),
  ];
}

/** A command needs what its method needs. The effect of an unknown command is unknown too. */
function commandNeeds(command: string): Capability {
  const route = commandRoute(command);
  if (route === undefined) return "admin";
  const { capability }: MethodRow = methods[route.method];
  return capability === "any" ? "admin" : capability;
}

interface LimitedCall extends AuthorityOptions {
  readonly grant: Grant;
  readonly make: () => unknown;
}

/**
 * Makes the call unless one of its subjects does not exist, or belongs to a session outside the token's limits. Both
 * throw the same error before anything else is checked.
 */
function insideOnly(subjects: readonly Subject[], params: object, call: LimitedCall): unknown {
  const { make } = call;
  for (const { kind, param } of subjects) {
    const id = paramOf(params, param);
    if (typeof id !== "string") continue;
    const place = placeOf(kind, id, call);
    if (place === "inside") continue;
    const error = notThere(kind, id);
    // The token's own earlier call with this key may have ended the session, and its result is returned again.
    if (place === "outside" || typeof paramOf(params, "idempotencyKey") !== "string") throw error;
    return repeated(make, error);
  }
  return make();
}

async function repeated(make: () => unknown, error: WireError): Promise<unknown> {
  try {
    return await make();
  } catch {
    throw error;
  }
}

function placeOf(
  kind: SubjectKind,
  id: string,
  { sessionOf, scopeOf, grant }: LimitedCall,
): "inside" | "outside" | "nowhere" {
  const sessionId = sessionOf[kind](id);
  const scope = sessionId === undefined ? undefined : scopeOf(sessionId);
  if (scope === undefined) return "nowhere";
  return grant.covers(scope) ? "inside" : "outside";
}

function notThere(kind: SubjectKind, id: string): WireError {
  return new WireError(absent[kind], `There is no ${kind} "${id}".`, { [idParam(kind)]: id });
}

function lacking(method: MethodName, needs: Capability, { name }: Grant): WireError {
  return new WireError("forbidden", `The token "${name}" does not allow this ${method}: it lacks "${needs}".`, {
    needs,
  });
}

function notLocal(method: MethodName, param: string | undefined): WireError {
  const what = param === undefined ? "is accepted" : `accepts "${param}"`;
  const message = `${method} ${what} only over the daemon's Unix socket.`;
  return new WireError("forbidden", message, param === undefined ? {} : { param });
}

function ended(): WireError {
  return new WireError("unauthorized", "The token has ended: it was revoked, or its secret was replaced.");
}
