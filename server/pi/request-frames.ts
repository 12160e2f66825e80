import type { Evidence } from "../../protocol/delivery.ts";
import { type BodyFacts, MAX_HEADER_CHARS, MAX_HEADERS, type OutwardFrame } from "../../protocol/link.ts";
import {
  cut,
  type Fields,
  isBoolean,
  isId,
  isIds,
  isInteger,
  isPlain,
  isString,
  isWord,
  type Words,
} from "./frame-fields.ts";

type Request = Extract<OutwardFrame, { kind: "request" }>;
type RequestEnd = Extract<OutwardFrame, { kind: "requestEnd" }>;

export const evidences: Words<Evidence> = { headers: true, start: true, content: true, message: true };
export const outcomes: Words<RequestEnd["outcome"]> = { delivered: true, failed: true, aborted: true };

/** It begins with a letter or digit, which excludes `__proto__`. */
const headerName = /^[0-9a-z][!#$%&'*+.^_`|~0-9a-z-]{0,127}$/;
const sha256 = /^[0-9a-f]{64}$/;
const maxModelLength = 256;

export function readRequest(fields: Fields, at: number): Request | undefined {
  const { requestId, deliveryIds, messageCount, model } = fields;
  if (!isId(requestId) || !isIds(deliveryIds) || !isCount(messageCount)) return undefined;
  const facts = readPayloadFacts(fields);
  const messages = readBody(fields["messages"]);
  const payload = readBody(fields["payload"]);
  if (facts === undefined || messages === null || payload === null || !isModel(model)) return undefined;
  return {
    kind: "request",
    at,
    requestId,
    deliveryIds: [...deliveryIds],
    messageCount,
    ...(model === undefined ? {} : { model: { provider: model.provider, id: model.id } }),
    ...facts,
    ...(messages === undefined ? {} : { messages }),
    ...(payload === undefined ? {} : { payload }),
  };
}

export function readRequestEnd(fields: Fields, at: number): RequestEnd | undefined {
  const { requestId, outcome, evidence, status, error, latencyMs, headersOmitted } = fields;
  if (!isId(requestId) || !isWord(outcomes, outcome) || !isCount(latencyMs)) return undefined;
  if (evidence !== undefined && !isWord(evidences, evidence)) return undefined;
  if (outcome === "delivered" && evidence === undefined) return undefined;
  if (status !== undefined && !isInteger(status)) return undefined;
  if (error !== undefined && !isString(error)) return undefined;
  if (headersOmitted !== undefined && !isCount(headersOmitted)) return undefined;
  const headers = readHeaders(fields["headers"]);
  const facts = readPayloadFacts(fields);
  if (headers === null || facts === undefined) return undefined;
  return {
    kind: "requestEnd",
    at,
    requestId,
    outcome,
    latencyMs,
    ...(evidence === undefined ? {} : { evidence }),
    ...(status === undefined ? {} : { status }),
    ...(error === undefined ? {} : { error: cut(error) }),
    ...(headers === undefined ? {} : { headers }),
    ...(headersOmitted === undefined || headersOmitted === 0 ? {} : { headersOmitted }),
    ...facts,
  };
}

function readPayloadFacts({
  payloadBytes,
  payloadSha256,
}: Fields): Pick<Request, "payloadBytes" | "payloadSha256"> | undefined {
  if (payloadBytes === undefined && payloadSha256 === undefined) return {};
  if (!isCount(payloadBytes) || !isString(payloadSha256) || !sha256.test(payloadSha256)) return undefined;
  return { payloadBytes, payloadSha256 };
}

/** `null`: present but invalid. */
function readBody(value: unknown): BodyFacts | undefined | null {
  if (value === undefined) return undefined;
  if (!isPlain(value)) return null;
  const { bytes, isLeft } = value;
  return isCount(bytes) && isBoolean(isLeft) ? { bytes, isLeft } : null;
}

/** `null`: present but invalid, or too many. */
function readHeaders(value: unknown): Readonly<Record<string, string>> | undefined | null {
  if (value === undefined) return undefined;
  if (!isPlain(value)) return null;
  const names = Object.keys(value);
  if (names.length > MAX_HEADERS) return null;
  const headers: Record<string, string> = {};
  let chars = 0;
  for (const name of names) {
    const text = value[name];
    if (!headerName.test(name) || !isString(text)) return null;
    chars += name.length + text.length;
    headers[name] = text;
  }
  return chars > MAX_HEADER_CHARS ? null : headers;
}

function isModel(value: unknown): value is { readonly provider: string; readonly id: string } | undefined {
  if (value === undefined) return true;
  return isPlain(value) && isName(value["provider"]) && isName(value["id"]);
}

function isName(value: unknown): value is string {
  return isString(value) && value.length <= maxModelLength;
}

function isCount(value: unknown): value is number {
  return isInteger(value) && value >= 0;
}
