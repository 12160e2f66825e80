import { MAX_HEADER_CHARS, MAX_HEADERS } from "../../protocol/link.ts";

/** Headers that may be shown, and how many more there were. */
export interface ShownHeaders {
  readonly headers: Readonly<Record<string, string>>;
  readonly omitted: number;
}

const redacted = "[redacted]";
const maxValueLength = 1_024;
/** A header's name as HTTP has it (RFC 9110, 5.6.2); the first is a letter or digit, so `__proto__` is none. */
const namePattern = /^[0-9a-z][!#$%&'*+.^_`|~0-9a-z-]{0,127}$/;
const secretName = /auth|cookie|token|secret|api-?key|(?:^|[-_])keys?(?:$|[-_])|passw|credential|signature|^proxy-/;
/** Names of limits count tokens, which are no secrets as long as the value is a number, a duration or a moment. */
const limitName = /rate-?limit/;
const amount = /^(?:\d{1,15}(?:\.\d{1,6})?(?:ms|us|[smhd])?){1,5}$|^\d{4}-\d\d-\d\dT[\d:.]{5,15}(?:Z|[+-]\d\d:?\d\d)$/;
const credential = /^(?:bearer|basic|digest|negotiate)\s|(?:^|[^a-z])(?:sk|pk|rk)-[\w-]{8}|^eyJ[\w-]+\.[\w-]+\./i;

/**
 * The response's headers without secrets: a value is replaced where the name, or the value itself, looks like one. At most
 * 64 headers of 16 Ki units of text in all, each value at most 1,024; further ones are counted only.
 */
export function shownHeaders(headers: unknown): ShownHeaders {
  const shown: Record<string, string> = {};
  let omitted = 0;
  let count = 0;
  let chars = 0;
  for (const [given, value] of Object.entries(headers ?? {})) {
    const name = given.toLowerCase();
    if (!namePattern.test(name) || typeof value !== "string") {
      omitted += 1;
      continue;
    }
    const text = shownValue(name, value);
    if (count >= MAX_HEADERS || chars + name.length + text.length > MAX_HEADER_CHARS) {
      omitted += 1;
      continue;
    }
    count += 1;
    chars += name.length + text.length;
    shown[name] = text;
  }
  return { headers: shown, omitted };
}

function shownValue(name: string, value: string): string {
  const isCounted = limitName.test(name) && amount.test(value);
  if ((secretName.test(name) && !isCounted) || credential.test(value)) return redacted;
  return value.slice(0, maxValueLength).toWellFormed();
}
