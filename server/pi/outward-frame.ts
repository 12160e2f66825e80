import type { PayloadCheck } from "../../protocol/delivery.ts";
import type {
  CarryReply,
  EntriesReply,
  HoldReply,
  LeftOutReason,
  OutwardFrame,
  ReleaseReply,
} from "../../protocol/link.ts";
import {
  cut,
  type Fields,
  isBoolean,
  isId,
  isIds,
  isInteger,
  isListOf,
  isPlain,
  isString,
  isWord,
  maxIds,
  type Words,
} from "./frame-fields.ts";
import { readNotice } from "./notice-frame.ts";
import { readPending } from "./pending-frame.ts";
import { evidences, outcomes, readRequest, readRequestEnd } from "./request-frames.ts";

type Kind = OutwardFrame["kind"];
type Frame<K extends Kind> = Extract<OutwardFrame, { kind: K }>;

/** A push that pi refused, in the reply to a `hold`. */
interface Refusal {
  readonly deliveryId: string;
  readonly why: string;
}

/** The latest moment that a `Date` can hold: a later one would throw when it is formatted. */
const maxTime = 8_640_000_000_000_000;
/** Ids of entries in one reply. */
const maxEntryIds = 10_000;
/** UTF-16 units of a line for the log. */
const maxFacts = 8 * 1_024;
/** The daemon sends `/<command> <frame>` as a prompt: any other text here would be sent as a message of the user. */
const commandPattern = /^[0-9A-Za-z][0-9A-Za-z_-]{7,127}$/;

const checks: Words<PayloadCheck> = { confirmed: true, unverified: true, unchecked: true };
const whyLeftOut: Words<LeftOutReason> = {
  compacted: true,
  session_replaced: true,
  removed_by_extension: true,
  off_branch: true,
};

const readers: { readonly [K in Kind]: (fields: Fields, at: number) => Frame<K> | undefined } = {
  hello: readHello,
  reply: readReply,
  inserted: ({ deliveryIds }, at) =>
    isIds(deliveryIds) ? { kind: "inserted", at, deliveryIds: [...deliveryIds] } : undefined,
  prepared: ({ requestId, deliveryIds }, at) =>
    isId(requestId) && isIds(deliveryIds)
      ? { kind: "prepared", at, requestId, deliveryIds: [...deliveryIds] }
      : undefined,
  verdict: readVerdict,
  answered: ({ requestId, deliveryIds }, at) =>
    isId(requestId) && isIds(deliveryIds)
      ? { kind: "answered", at, requestId, deliveryIds: [...deliveryIds] }
      : undefined,
  request: readRequest,
  requestEnd: readRequestEnd,
  leftOut: ({ deliveryIds, reason }, at) =>
    isIds(deliveryIds) && isWord(whyLeftOut, reason)
      ? { kind: "leftOut", at, deliveryIds: [...deliveryIds], reason }
      : undefined,
  dropped: ({ deliveryIds, reason }, at) =>
    isIds(deliveryIds) && (reason === "abort" || reason === "released")
      ? { kind: "dropped", at, deliveryIds: [...deliveryIds], reason }
      : undefined,
  settled: ({ aborted, failed, held }, at) =>
    isBoolean(aborted) && isBoolean(failed) && isIds(held)
      ? { kind: "settled", at, aborted, failed, held: [...held] }
      : undefined,
  pending: readPending,
  notice: readNotice,
  reload: (_fields, at) => ({ kind: "reload", at }),
  debug: readDebug,
  fault: ({ where, error, part }, at) => {
    if (!isString(where) || !isString(error) || (part !== undefined && !isString(part))) return undefined;
    const named = part === undefined ? {} : { part: cut(part) };
    return { kind: "fault", at, where: cut(where), error: cut(error), ...named };
  },
};

/**
 * Validates the frame in a status text, given the result of `JSON.parse`: returns a new object with the known fields,
 * or undefined if any of them is invalid. Other extensions in the same pi can write anything under the same status
 * key, so a frame is untrusted input, like a client's.
 */
export function parseOutwardFrame(value: unknown): OutwardFrame | undefined {
  if (!isPlain(value)) return undefined;
  const { kind, at } = value;
  if (!isString(kind) || !Object.hasOwn(readers, kind)) return undefined;
  if (!isInteger(at) || at < 0 || at > maxTime) return undefined;
  return readers[kind as Kind](value, at);
}

export function isHoldReply(data: unknown): data is HoldReply & { readonly refused?: readonly Refusal[] } {
  if (!isPlain(data)) return false;
  const { held, inserted, running, refused } = data;
  return isIds(held) && isIds(inserted) && isBoolean(running) && (refused === undefined || isRefusals(refused));
}

export function isCarryReply(data: unknown): data is CarryReply {
  return (
    isPlain(data) && isBoolean(data["started"]) && (data["isOffBranch"] === undefined || isBoolean(data["isOffBranch"]))
  );
}

export function isReleaseReply(data: unknown): data is ReleaseReply {
  return isPlain(data) && isIds(data["released"]) && isIds(data["tooLate"]) && isIds(data["pending"]);
}

export function isEntriesReply(data: unknown): data is EntriesReply {
  if (!isPlain(data) || (data["leafId"] !== undefined && !isString(data["leafId"]))) return false;
  const ids = data["ids"];
  return Array.isArray(ids) && ids.length <= maxEntryIds && ids.every(isString);
}

function readHello(fields: Fields, at: number): Frame<"hello"> | undefined {
  const { link, command, reason, sessionId, sessionFile } = fields;
  if (!isInteger(link) || !isString(command) || !commandPattern.test(command)) return undefined;
  if (!isString(reason) || !isString(sessionId)) return undefined;
  if (sessionFile !== undefined && !isString(sessionFile)) return undefined;
  return {
    kind: "hello",
    at,
    link,
    command,
    reason,
    sessionId,
    ...(sessionFile === undefined ? {} : { sessionFile }),
  };
}

function readDebug({ part, facts }: Fields, at: number): Frame<"debug"> | undefined {
  if (!isString(part) || !isPlain(facts)) return undefined;
  try {
    const json = JSON.stringify(facts);
    return json.length > maxFacts ? undefined : { kind: "debug", at, part: cut(part), facts: JSON.parse(json) };
  } catch {
    return undefined;
  }
}

function readReply(fields: Fields, at: number): Frame<"reply"> | undefined {
  const { rid, ok, data, error } = fields;
  if (!isString(rid)) return undefined;
  if (ok === true) return { kind: "reply", at, rid, ok, data };
  return ok === false && isString(error) ? { kind: "reply", at, rid, ok, error: cut(error) } : undefined;
}

function readVerdict(fields: Fields, at: number): Frame<"verdict"> | undefined {
  const { requestId, outcome, evidence, status, error } = fields;
  if (!isId(requestId) || !isWord(outcomes, outcome)) return undefined;
  if (evidence !== undefined && !isWord(evidences, evidence)) return undefined;
  if (status !== undefined && !isInteger(status)) return undefined;
  if (error !== undefined && !isString(error)) return undefined;
  const payload = readPayload(fields["payload"]);
  if (payload === undefined) return undefined;
  return {
    kind: "verdict",
    at,
    requestId,
    outcome,
    ...(evidence === undefined ? {} : { evidence }),
    ...(status === undefined ? {} : { status }),
    ...(error === undefined ? {} : { error: cut(error) }),
    payload,
  };
}

/** Ids begin with a letter or digit, so `__proto__`, which can be an own key after `JSON.parse`, is refused. */
function readPayload(value: unknown): Record<string, PayloadCheck> | undefined {
  if (!isPlain(value)) return undefined;
  const ids = Object.keys(value);
  if (ids.length > maxIds) return undefined;
  const payload: Record<string, PayloadCheck> = {};
  for (const id of ids) {
    const check = value[id];
    if (!isId(id) || !isWord(checks, check)) return undefined;
    payload[id] = check;
  }
  return payload;
}

function isRefusals(value: unknown): value is readonly Refusal[] {
  return isListOf(value, (one) => isPlain(one) && isId(one["deliveryId"]) && isString(one["why"]));
}
