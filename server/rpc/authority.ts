import type { Capability } from "../../protocol/capability.ts";
import { type ErrorName, WireError } from "../../protocol/errors.ts";
import type { MethodRow } from "../../protocol/method-row.ts";
import { type MethodName, methods } from "../../protocol/methods.ts";
import { routeOf } from "../../protocol/pi-commands.ts";
import type { SessionScope } from "../core/session-scope.ts";
import type { Call, Handlers } from "./call.ts";
import { type SessionParam, sessionParams } from "./governance.ts";
import type { Grant } from "./grant.ts";
import { paramNeeds } from "./param-needs.ts";

export interface AuthorityOptions {
  /** To which session something belongs that a param names. Undefined: there is no such thing. */
  readonly sessionOf: Readonly<Record<SessionParam, (id: string) => string | undefined>>;
  /** Undefined: there is no such session, or it was closed. */
  readonly scopeOf: (sessionId: string) => SessionScope | undefined;
}

type Given = Readonly<Record<string, unknown>>;
type AnyHandler = (params: Given, call: Call) => unknown;

/** How the methods themselves say that something is not there. */
const absent: Readonly<Record<SessionParam, readonly [error: ErrorName, word: string]>> = {
  sessionId: ["session_not_found", "session"],
  deliveryId: ["delivery_not_found", "delivery"],
  dialogId: ["dialog_not_found", "dialog"],
  promptId: ["prompt_not_found", "prompt"],
};

/** Params by which a method says what is new, or that it looks at itself with the grant. */
const lookedAtElsewhere: Readonly<Partial<Record<MethodName, readonly SessionParam[]>>> = {
  "session/open": ["sessionId"],
  "session/unsubscribe": ["sessionId"],
  "session/prompt": ["promptId"],
  "session/steer": ["promptId"],
  "session/followUp": ["promptId"],
  "delivery/list": ["sessionId"],
  "delivery/push": ["deliveryId"],
};

/** What `after` names, where it is the id of something that belongs to a session. */
const cursors: Readonly<Partial<Record<MethodName, SessionParam>>> = {
  "delivery/list": "deliveryId",
  "dialog/list": "dialogId",
};

/**
 * Refuses what the caller's token does not allow, before anything else looks at the call: `unauthorized` where the token has
 * ended, `forbidden` (`data.needs`) where it lacks a capability, and for a token with limits as not there where a param names
 * something that is not there, or belongs to a session outside the limits. Nothing that a call says of itself changes it. The one place where
 * this is decided, for all methods of the table and every transport.
 */
export function authorised(handlers: Handlers, options: AuthorityOptions): Handlers {
  const wrap = (method: MethodName, handler: AnyHandler): AnyHandler => {
    return (params, call) => {
      const { grant } = call;
      if (grant === undefined || grant.isEnded) throw ended();
      const needs = missing(method, params, grant);
      if (needs !== undefined) throw lacking(method, needs, grant);
      const answer = grant.isLimited
        ? insideOnly(method, params, grant, options, () => handler(params, call))
        : handler(params, call);
      const isAboutItself = method.startsWith("token/") && params["name"] === grant.name;
      if (isAboutItself) return answer;
      if (!(answer instanceof Promise)) return answer;
      return answer.finally(() => {
        // What came about meanwhile is not told to whom the token was taken from.
        if (grant.isEnded) throw ended();
      });
    };
  };
  return Object.fromEntries(
    Object.entries(handlers).map(([method, handler]) => [method, wrap(method as MethodName, handler as never)]),
  ) as unknown as Handlers;
}

/** The first capability that a call needs and the token lacks. */
function missing(method: MethodName, params: Given, grant: Grant): Capability | undefined {
  if (grant.allows("admin")) return undefined;
  return needed(method, params, grant).find((capability) => !grant.allows(capability));
}

function needed(method: MethodName, params: Given, grant: Grant): readonly Capability[] {
  const { capability } = methods[method] as MethodRow;
  return [
    ...(capability === "any" ? [] : [capability]),
    ...paramNeeds(method, params),
    ...(method === "session/command" ? [commandNeeds(params)] : []),
    // What all sessions share belongs to none of those that it knows.
    ...(grant.isLimited && params["confirmShared"] === true ? (["admin"] as const) : []),
  ];
}

/** A command that is sent as it is needs what its method needs. What one does that nobody here knows, nobody can say. */
function commandNeeds(params: Given): Capability {
  const { type } = params["command"] as { readonly type: string };
  const method = type === "extension_ui_response" ? "dialog/respond" : routeOf(type)?.method;
  const row = method === undefined ? undefined : (methods[method as MethodName] as MethodRow);
  return row === undefined || row.capability === "any" ? "admin" : row.capability;
}

/**
 * Makes the call unless it names something that the token does not know: what is not there, and what belongs to a session
 * outside the token's limits. Both get the same error before anything else is looked at.
 */
function insideOnly(
  method: MethodName,
  params: Given,
  grant: Grant,
  options: AuthorityOptions,
  make: () => unknown,
): unknown {
  const subjects = sessionParams
    .filter((param) => lookedAtElsewhere[method]?.includes(param) !== true)
    .map((param) => [param, params[param]] as const);
  const cursor = cursors[method];
  if (cursor !== undefined) subjects.push([cursor, params["after"]]);
  for (const [param, id] of subjects) {
    if (typeof id !== "string") continue;
    const place = placeOf(param, id, grant, options);
    if (place === "inside") continue;
    const error = notThere(param, id);
    // The token's own call with this key may have ended the session, and gets its result again.
    if (place === "outside" || typeof params["idempotencyKey"] !== "string") throw error;
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
  param: SessionParam,
  id: string,
  grant: Grant,
  { sessionOf, scopeOf }: AuthorityOptions,
): "inside" | "outside" | "nowhere" {
  const sessionId = sessionOf[param](id);
  const scope = sessionId === undefined ? undefined : scopeOf(sessionId);
  if (scope !== undefined) return grant.covers(scope) ? "inside" : "outside";
  return "nowhere";
}

function notThere(param: SessionParam, id: string): WireError {
  const [error, word] = absent[param];
  return new WireError(error, `There is no ${word} "${id}".`, { [param]: id });
}

function lacking(method: MethodName, needs: Capability, { name }: Grant): WireError {
  return new WireError("forbidden", `The token "${name}" does not allow this ${method}: it lacks "${needs}".`, {
    needs,
  });
}

function ended(): WireError {
  return new WireError("unauthorized", "The token has ended: it was revoked, or has another secret now.");
}
