import type { Static, TSchema } from "typebox";
import { MAX_FORMER_TEXT_BYTES, MAX_HEADER_CHARS } from "../../protocol/link.ts";
import { CarryReply, EntriesReply, HoldReply, ReleaseReply } from "../../protocol/link-inward.ts";
import { type OutwardFrame, outwardFrames } from "../../protocol/link-outward.ts";
import { nonFiniteIn } from "../../protocol/non-finite.ts";
import { isRecord } from "../../protocol/objects.ts";
import { notices } from "../../protocol/optimisation/notices.ts";
import { compilerOf, createValidator, type Validator } from "../../protocol/validation.ts";
import { once } from "../../protocol/validator.ts";
import { isBounded } from "./structure.ts";

type Frame<K extends OutwardFrame["kind"]> = Extract<OutwardFrame, { kind: K }>;

/** UTF-16 units of a line for the log. */
const maxFacts = 8 * 1_024;
const maxErrorLength = 1_024;
const maxLabelLength = 200;

/** Compiles each schema at its first use. Unknown fields of a frame are removed. */
const validatorOf = once(compilerOf({ allErrors: false, ignoreUnknown: false, removeUnknown: true }));
let noticeValidator: Validator | undefined;

/**
 * Parses and validates the frame in a status text: returns it with its known fields, or undefined if any of them is
 * invalid. Other extensions in the same pi can write anything under the same status key, so a frame is untrusted input,
 * like a client's.
 */
export function parseOutwardFrame(text: string): OutwardFrame | undefined {
  const value = parsed(text);
  if (!isRecord(value)) return undefined;
  const { kind, ok } = value;
  const name = kind === "reply" && ok === false ? "refusal" : kind;
  if (typeof name !== "string" || !Object.hasOwn(outwardFrames, name)) return undefined;
  const schema = outwardFrames[name as keyof typeof outwardFrames];
  return fits<OutwardFrame>(schema, value) ? bounded(value) : undefined;
}

/** Undefined if it is not JSON, is nested too deeply, or has so many parts that the daemon would block for seconds. */
function parsed(text: string): unknown {
  if (!isBounded(Buffer.from(text))) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Applies the bounds that a schema cannot express: long texts for people are cut, other values are refused. */
function bounded(frame: OutwardFrame): OutwardFrame | undefined {
  switch (frame.kind) {
    case "reply":
      return frame.ok ? frame : withShortError(frame);
    case "verdict":
      return withShortError(frame);
    case "requestEnd":
      return requestEnd(frame);
    case "formerText":
      return Buffer.byteLength(frame.text ?? "") > MAX_FORMER_TEXT_BYTES ? undefined : frame;
    case "pending":
      return { ...frame, pending: frame.pending.map((item) => withShortError({ ...item, label: label(item.label) })) };
    case "notice":
      noticeValidator ??= createValidator();
      // The validator accepts an infinite number, which subscribers would get as null.
      if (nonFiniteIn(frame.data) !== undefined) return undefined;
      return noticeValidator.schema(notices[frame.name], frame.data).length === 0 ? frame : undefined;
    case "debug":
      return JSON.stringify(frame.facts).length > maxFacts ? undefined : { ...frame, part: cut(frame.part) };
    case "fault": {
      const { where, part } = frame;
      return withShortError({ ...frame, where: cut(where), ...(part === undefined ? {} : { part: cut(part) }) });
    }
    default:
      return frame;
  }
}

function requestEnd(frame: Frame<"requestEnd">): Frame<"requestEnd"> | undefined {
  const { headersOmitted, ...rest } = frame;
  let chars = 0;
  for (const [name, text] of Object.entries(frame.headers ?? {})) chars += name.length + text.length;
  if (chars > MAX_HEADER_CHARS) return undefined;
  return withShortError(headersOmitted === 0 ? rest : frame);
}

function withShortError<T extends { readonly error?: string }>(value: T): T {
  return value.error === undefined || value.error.length <= maxErrorLength
    ? value
    : { ...value, error: cut(value.error) };
}

function label(text: string): string {
  return cut(text).slice(0, maxLabelLength).toWellFormed();
}

/** A cut can split a surrogate pair, which would make the text invalid. */
function cut(text: string): string {
  return text.length <= maxErrorLength ? text : text.slice(0, maxErrorLength).toWellFormed();
}

// Data of the helper's replies.
export const isHoldReply: Guard<HoldReply> = guard(HoldReply);
export const isCarryReply: Guard<CarryReply> = guard(CarryReply);
export const isReleaseReply: Guard<ReleaseReply> = guard(ReleaseReply);
export const isEntriesReply: Guard<EntriesReply> = guard(EntriesReply);

type Guard<T> = (data: unknown) => data is T;

function guard<S extends TSchema>(schema: S): Guard<Static<S>> {
  return (data): data is Static<S> => fits(schema, data);
}

function fits<T>(schema: object, value: unknown): value is T {
  const validate = validatorOf(schema);
  if (validate(value)) return true;
  // They hold parts of the refused frame, which may be large.
  validate.errors = null;
  return false;
}
