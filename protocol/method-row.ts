import type { TSchema } from "typebox";
import type { Capability } from "./capability.ts";
import type { ErrorName } from "./errors.ts";

/**
 * A path whose `{names}` are params. The other params come from the query, or from a JSON body where the verb has one; the
 * answer is the result alone, or the error as `application/problem+json`.
 */
export interface HttpRoute {
  readonly verb: "GET" | "POST" | "PUT" | "DELETE";
  readonly path: `/${string}`;
  /** It takes only requests that have this name in their query. Another row has the path without it. */
  readonly ifQuery?: string;
  /**
   * The answer is a stream of server-sent events: the result first, then the notifications of this subscription. Of two
   * rows with the same path this one takes the requests that accept `text/event-stream`.
   */
  readonly stream?: true;
  /** Former path, deprecated but still answered. */
  readonly formerPath?: `/${string}`;
}

/** Why a method has no path: it can be called by JSON-RPC alone. */
export interface NoRoute {
  readonly none: string;
}

/** Capability that a param needs. A param that is `false` or null turns something off, and needs none. */
export interface ParamNeed {
  /** Path of a nested param: `optimisation.contextFiles.sections[].path`. */
  readonly param: string;
  /** Default: any. */
  readonly value?: string;
  readonly capability: Capability;
  /** Only over the daemon's Unix socket, because the value is secret or concerns the user's own machine. */
  readonly isLocal?: true;
}

/**
 * A rate limit that the calls of one token share. `starts`: calls that start a pi. `prompts`: calls that give a model work.
 * `pushes`: pushes.
 */
export type RateClass = "starts" | "prompts" | "pushes";

/** What an id can identify: a session, or something that belongs to one. */
export type SubjectKind = "session" | "delivery" | "dialog" | "prompt";

/** The param whose value identifies what a call is about. */
export interface Subject {
  readonly kind: SubjectKind;
  readonly param: string;
  /**
   * A client may choose the id of something new, so an unknown id is valid. The method itself compares the call with
   * something that has this id already.
   */
  readonly isChosen?: true;
}

/** The command of pi's RPC that a method corresponds to. */
export interface PiCommandFacts {
  readonly command: string;
  /** Whether `session/command` sends it too. It refuses commands that the daemon must track or limit. */
  readonly asItIs: boolean;
  /** The setting in the user's shared settings file that it rewrites (measured on both versions). */
  readonly setting?: string;
}

/** One row of the method table: every fact about the method. Policies, documents and clients read it. */
export interface MethodRow {
  readonly summary: string;
  readonly params: TSchema;
  readonly result: TSchema;
  /**
   * `session`: calls reach the session's pi one after the other, in order of arrival. `none`: they do not wait for each
   * other. The session takes its queue itself, because the turn ends when pi has responded and not with the call: see
   * `server/rpc/README.md`.
   */
  readonly scope: "none" | "session";
  /** HTTP route, or why there is none. */
  readonly http: HttpRoute | NoRoute;
  /**
   * Source of the answer if the session has no pi. `file`: the session's file. `cached`: pi's last answer. Both start no
   * pi, and throw `session_asleep` if the answer is not known. `wake`: a pi that is started. Default: the method needs
   * no pi.
   */
  readonly asleep?: "file" | "cached" | "wake";
  /** With `asleep: "file"`: pi's last answer is cached too, because the file has only a part of it. */
  readonly alsoCached?: true;
  /** With `asleep: "wake"`: only calls with this param start the session's pi. Default: all calls do. */
  readonly wakesWith?: string;
  /** A call without a session starts a pi of its own if this param is true. Default: it starts none. */
  readonly startsWith?: string;
  /** Default: only the number of waiting calls is limited, and the number of starts with `asleep: "wake"`. */
  readonly rate?: RateClass;
  /** What a token must allow. `any`: every token may call it. */
  readonly capability: Capability | "any";
  /** Only over the daemon's Unix socket, because the call concerns the user's own machine. */
  readonly isLocal?: true;
  /** Changes nothing, despite its capability. Methods that need `observe` or nothing never change anything. */
  readonly reads?: true;
  /** Additional capabilities for a param, or for one of its values. */
  readonly needs?: readonly ParamNeed[];
  /** Whether a client without control may call it in an exclusive session. Default: only if it changes nothing. */
  readonly governed?: false;
  /**
   * Ids that are checked against the limits of the token and the control of the session. Default: the params
   * `sessionId`, `deliveryId`, `dialogId` and `promptId`, as far as the method has them.
   */
  readonly subjects?: readonly Subject[];
  /** The param with the name of the token that the call ends. If it is the caller's own, the caller still gets the result. */
  readonly endsToken?: string;
  /**
   * What a client does if the connection ends before the answer. `safe`: it repeats the call. `keyed`: it repeats the
   * call with the same key, and the daemon recognises the key. `never`: it reports the loss, because the call may have
   * taken effect.
   */
  readonly retry: "safe" | "keyed" | "never";
  /** With `retry: "keyed"`: the param with the key. Default: `idempotencyKey`, which a client adds. A client adds no other key. */
  readonly key?: string;
  /**
   * How a daemon that was restarted finds out whether a call with an idempotency key took effect. `prompt`, `session`:
   * by the id of the prompt or session, which is stored with the key. `setting`: a repeated call has the same effect.
   * `answer`: the dialog is open still, or the id of the call that answered it is stored with it.
   * Default: it cannot, so a repeated call throws `outcome_unknown`.
   */
  readonly effect?: "prompt" | "session" | "setting" | "answer";
  /** The param with the id that the effect will have. Default: the daemon chooses the id. */
  readonly effectId?: string;
  /**
   * Params that the daemon keeps in memory alone, because they are secret: they are not part of the stored hash by which a
   * repeated call is compared with the first one.
   */
  readonly unstored?: readonly string[];
  /** The part that must be on in the session's configuration. Default: none. */
  readonly part?: "pruning" | "cacheAudit";
  /** pi's command for it. Default: pi has none. */
  readonly pi?: PiCommandFacts;
  /**
   * The param with a command of pi. The call also needs the capability of the command's method, and changes nothing if
   * the command changes nothing.
   */
  readonly sendsCommand?: string;
  /** The first version of the package that had it. */
  readonly since: string;
  /** Errors beyond those that every method can give. */
  readonly errors: readonly ErrorName[];
}

/** Rows by their methods' names. */
export type MethodTable = Readonly<Record<string, MethodRow>>;

/** Returns the route of a row, if it has one. */
export function routeOf({ http }: MethodRow): HttpRoute | undefined {
  return "path" in http ? http : undefined;
}

/** Returns all routes of a row: its own and the former one. */
export function routesOf(row: MethodRow): readonly (HttpRoute & { readonly isFormer: boolean })[] {
  const route = routeOf(row);
  if (route === undefined) return [];
  const { formerPath } = route;
  const own = { ...route, isFormer: false };
  return formerPath === undefined ? [own] : [own, { ...route, path: formerPath, isFormer: true }];
}

/** Whether calls can ask for the last known answer: by the param `cached`. */
export function takesCached({ params }: MethodRow): boolean {
  return hasParam(params, "cached");
}

/** Whether a method changes nothing. */
export function isReading({ capability, reads }: MethodRow): boolean {
  return capability === "observe" || capability === "any" || reads === true;
}

const subjectKinds = ["session", "delivery", "dialog", "prompt"] as const satisfies readonly SubjectKind[];

/** The param that identifies something of a kind, and the field of results that does. */
export function idParam(kind: SubjectKind): `${SubjectKind}Id` {
  return `${kind}Id`;
}

/** Every kind of subject, with the param that identifies it. */
export const idParams: readonly Subject[] = subjectKinds.map((kind) => ({ kind, param: idParam(kind) }));

/** What the calls of a method are about. */
export function subjectsOf({ subjects, params }: MethodRow): readonly Subject[] {
  return subjects ?? idParams.filter(({ param }) => hasParam(params, param));
}

function hasParam(params: TSchema, name: string): boolean {
  return "properties" in params && Object.hasOwn(Object(params.properties), name);
}
