import { MAX_HEADER_CHARS, MAX_HEADERS } from "../../protocol/link.ts";

/** Headers that may be shown, and the number left out. */
export interface ShownHeaders {
  readonly headers: Readonly<Record<string, string>>;
  readonly omitted: number;
}

const redacted = "[redacted]";
const maxValueLength = 1_024;
/** HTTP header name (RFC 9110, 5.6.2) that starts with a letter or digit, which excludes `__proto__`. */
const namePattern = /^[0-9a-z][!#$%&'*+.^_`|~0-9a-z-]{0,127}$/;
const secretName = /auth|cookie|token|secret|api-?key|(?:^|[-_])keys?(?:$|[-_])|passw|credential|signature|^proxy-/;
/** "token" in a rate-limit header is not a secret if the value is a number, a duration or a time. */
const limitName = /rate-?limit/;
const amount = /^(?:\d{1,15}(?:\.\d{1,6})?(?:ms|us|[smhd])?){1,5}$|^\d{4}-\d\d-\d\dT[\d:.]{5,15}(?:Z|[+-]\d\d:?\d\d)$/;
const credential = /^(?:bearer|basic|digest|negotiate)\s|(?:^|[^a-z])(?:sk|pk|rk)-[\w-]{8}|^eyJ[\w-]+\.[\w-]+\./i;

/**
 * Returns the response headers without secrets: a value is replaced if its name or the value itself looks like a
 * secret. At most 64 headers with 16 Ki units of text in total, each value at most 1,024; the rest are counted.
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
