import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { shownHeaders } from "../../../extension/provider/headers.ts";
import { MAX_HEADER_CHARS, MAX_HEADERS } from "../../../protocol/link.ts";

describe("the reported headers", () => {
  test.each([
    "authorization",
    "Authorization",
    "proxy-authorization",
    "proxy-authenticate",
    "www-authenticate",
    "proxy-anything",
    "cookie",
    "Set-Cookie",
    "set-cookie2",
    "x-api-key",
    "X-Goog-Api-Key",
    "openai-api-key",
    "apikey",
    "key",
    "x-amz-key-id",
    "api_key",
    "x-amz-security-token",
    "x-auth-token",
    "tokens",
    "x-csrf-token",
    "x-client-secret",
    "x-user-password",
    "x-credentials",
    "x-amz-signature",
  ])("have no value of %s", (name) => {
    expect(shownHeaders({ [name]: "hidden" })).toEqual({ headers: { [name.toLowerCase()]: "[redacted]" }, omitted: 0 });
  });

  test.each([
    ["content-type", "text/event-stream; charset=utf-8"],
    ["request-id", "req_018EeWyXxfu5pfWkrYcMdjWG"],
    ["x-request-id", "0f1e-22"],
    ["cf-ray", "8e1f-FRA"],
    ["keep-alive", "timeout=5"],
    ["x-monkey", "banana"],
    ["retry-after", "20"],
    ["x-ratelimit-remaining-tokens", "149984"],
    ["x-ratelimit-reset-tokens", "6m0.5s"],
    ["anthropic-ratelimit-input-tokens-reset", "2026-11-21T05:00:00Z"],
  ])("have that of %s", (name, value) => {
    expect(shownHeaders({ [name]: value }).headers).toEqual({ [name]: value });
  });

  test.each([
    ["x-ratelimit-token", "sk-abcdefgh"],
    ["x-ratelimit-token", "a1b2c3d4"],
    ["x-forwarded", "Bearer abc"],
    ["x-forwarded", "basic YTpi"],
    ["x-trace", "with sk-proj-abcdefghijk inside"],
    ["x-trace", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln"],
  ])("have no value of %s when it is %s", (name, value) => {
    expect(shownHeaders({ [name]: value }).headers).toEqual({ [name]: "[redacted]" });
  });

  test("are bounded in number and length, and omitted ones are counted", () => {
    const many = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`x-${i}`, "v"]));
    expect(shownHeaders(many).omitted).toBe(100 - MAX_HEADERS);
    expect(Object.keys(shownHeaders(many).headers)).toHaveLength(MAX_HEADERS);
    const long = shownHeaders({ "x-long": "a".repeat(100_000) }).headers["x-long"];
    expect(long).toHaveLength(1_024);
    const large = Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`x-${i}`, "v".repeat(1_000)]));
    expect(shownHeaders(large).omitted).toBeGreaterThan(20);
  });

  test("are empty if there are none, or they are not valid headers", () => {
    for (const wrong of [undefined, null, 7, {}, []]) expect(shownHeaders(wrong)).toEqual({ headers: {}, omitted: 0 });
    expect(shownHeaders({ "a b": "1", "": "2", x: 3, __proto__: {} })).toEqual({ headers: {}, omitted: 3 });
  });

  test("keep their limits for any input", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.string({ maxLength: 3_000 }), { maxKeys: 120 }), (given) => {
        const { headers, omitted } = shownHeaders(given);
        const entries = Object.entries(headers);
        expect(entries.length).toBeLessThanOrEqual(MAX_HEADERS);
        expect(entries.flat().join("").length).toBeLessThanOrEqual(MAX_HEADER_CHARS);
        expect(entries.length + omitted).toBeLessThanOrEqual(Object.keys(given).length);
      }),
    );
  });
});
