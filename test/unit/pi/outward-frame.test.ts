import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type OutwardFrame, outwardFrames } from "../../../protocol/link-outward.ts";
import { isCarryReply, isHoldReply, parseOutwardFrame } from "../../../server/pi/outward-frame.ts";

const at = 1_753_000_000_000;
const command = "pi-rpcd-0123456789abcdef";
const hello = { kind: "hello", at, link: 1, command, reason: "startup", sessionId: "s" } as const;
const verdict = { kind: "verdict", at, requestId: "r", outcome: "delivered", payload: { d: "confirmed" } } as const;
const request = { kind: "request", at, requestId: "r", deliveryIds: [], messageCount: 2 } as const;
const facts = { payloadBytes: 10, payloadSha256: "0".repeat(64) };
const requestEnd = {
  kind: "requestEnd",
  at,
  requestId: "r",
  outcome: "delivered",
  evidence: "headers",
  latencyMs: 0,
} as const;
const frames: readonly OutwardFrame[] = [
  hello,
  { ...hello, sessionFile: "/tmp/s.jsonl" },
  { kind: "reply", at, rid: "1", ok: true, data: { held: ["d"], inserted: [], running: false } },
  { kind: "reply", at, rid: "1", ok: false, error: "no" },
  { kind: "inserted", at, deliveryIds: ["d", "A.b:-", "constructor", "x".repeat(128)] },
  { kind: "prepared", at, requestId: "r", deliveryIds: ["d"] },
  verdict,
  { ...verdict, evidence: "headers", status: 200, payload: { d: "unverified", build: "unchecked" } },
  { kind: "verdict", at, requestId: "r", outcome: "failed", status: 529, error: "overloaded", payload: {} },
  { kind: "answered", at, requestId: "r", deliveryIds: [] },
  { kind: "leftOut", at, deliveryIds: ["d"], reason: "off_branch" },
  { kind: "dropped", at, deliveryIds: ["d"], reason: "abort" },
  { kind: "settled", at: 0, aborted: true, failed: false, held: ["d"] },
  { kind: "fault", at, where: "observer", error: "x" },
  { kind: "reload", at },
  { kind: "formerText", at, toolCallId: "t", path: "/f", text: "old" },
  { kind: "formerText", at, toolCallId: "t", path: "/f", text: null },
  { kind: "debug", at, part: "pruning", facts: { request: 3, usage: null } },
  request,
  { ...request, deliveryIds: ["d"], model: { provider: "p", id: "m" }, ...facts },
  { ...request, messages: { bytes: 5, isLeft: true }, payload: { bytes: 10, isLeft: false } },
  requestEnd,
  { ...requestEnd, status: 200, headers: { "content-type": "x" }, headersOmitted: 1, ...facts },
  { kind: "requestEnd", at, requestId: "r", outcome: "failed", status: 529, error: "overloaded", latencyMs: 7 },
  { kind: "pending", at, pending: [{ id: "job", label: "build", state: "running", startedAt: at }] },
  { kind: "notice", at, name: "session/labelled", data: { entryId: "e", label: null } },
];

/** The fields that a frame may lack, in addition to the common ones. */
const mayLack: Partial<Record<OutwardFrame["kind"], readonly string[]>> = {
  reply: ["data"],
  verdict: ["evidence", "error"],
  request: ["model", "messages", "payload"],
  requestEnd: ["headers", "headersOmitted", "error"],
};

const parse = (frame: object): OutwardFrame | undefined => parseOutwardFrame(JSON.stringify(frame));
const mutant = (frame: object, field: string, value: unknown): OutwardFrame | undefined =>
  parse({ ...frame, [field]: value });

describe("parseOutwardFrame", () => {
  test("is tested with each kind of frame", () => {
    // A refusal is a reply.
    const kinds = Object.keys(outwardFrames).filter((name) => name !== "refusal");
    expect(new Set<string>(frames.map(({ kind }) => kind))).toEqual(new Set(kinds));
  });

  test.each(frames)("returns $kind with its known fields only", (frame) => {
    expect(parse({ ...frame, more: 1, toString: "x" })).toStrictEqual(frame);
    const text = JSON.stringify(frame);
    expect(parseOutwardFrame(text.replace("{", '{"__proto__":{"kind":"hello"},'))).toStrictEqual(frame);
  });

  test.each(frames)("refuses $kind without any one of its required fields", (frame) => {
    const optional = ["sessionFile", "status", ...(mayLack[frame.kind] ?? [])];
    for (const field of Object.keys(frame)) {
      const { [field]: _left, ...rest } = frame as unknown as Record<string, unknown>;
      expect(parse(rest) !== undefined, field).toBe(optional.includes(field));
    }
  });

  test("refuses kinds that are inherited names of the table", () => {
    for (const kind of [
      "",
      "hold",
      "Hello",
      "constructor",
      "__proto__",
      "toString",
      "hasOwnProperty",
      1,
      null,
      ["hello"],
    ])
      expect(mutant(hello, "kind", kind)).toBeUndefined();
  });

  test("refuses invalid times", () => {
    for (const wrong of [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 8.64e15 + 1, 1e300, "1", null])
      expect(mutant(hello, "at", wrong)).toBeUndefined();
  });

  test("refuses invalid ids, and more than 10,000 of them", () => {
    const inserted = { kind: "inserted", at };
    for (const id of ["", "a b", "a\n", "__proto__", "é", "x".repeat(129), 1, null, ["d"]]) {
      expect(mutant(inserted, "deliveryIds", ["d", id])).toBeUndefined();
      expect(mutant(verdict, "requestId", id)).toBeUndefined();
    }
    const many = Array.from({ length: 10_001 }, (_, i) => `d${i}`);
    for (const wrong of [many, "d", {}, { length: 1, 0: "d" }, new Array(2)])
      expect(mutant(inserted, "deliveryIds", wrong)).toBeUndefined();
    expect(mutant(inserted, "deliveryIds", many.slice(1))).toHaveProperty("deliveryIds.length", 10_000);
    const payload = (ids: string[]): unknown => Object.fromEntries(ids.map((id) => [id, "confirmed"]));
    expect(mutant(verdict, "payload", payload(many))).toBeUndefined();
    expect(mutant(verdict, "payload", payload(many.slice(1)))).toBeDefined();
  });

  test("refuses a payload that is not a plain object of ids and known words", () => {
    const parsed = (payload: string): OutwardFrame | undefined =>
      parseOutwardFrame(`{"kind":"verdict","at":1,"requestId":"r","outcome":"failed","payload":${payload}}`);
    for (const wrong of [
      '{"__proto__":"confirmed"}',
      '{"__proto__":{"d":"confirmed"}}',
      '{"d":"toString"}',
      "[]",
      "null",
    ])
      expect(parsed(wrong)).toBeUndefined();
    for (const wrong of ["d", { "a b": "confirmed" }, { "a\n": "confirmed" }, { d: ["confirmed"] }])
      expect(mutant(verdict, "payload", wrong)).toBeUndefined();
    expect(parsed('{"d":"unchecked"}')).toHaveProperty("payload", { d: "unchecked" });
  });

  test("refuses unknown words", () => {
    for (const word of ["", "constructor", "Headers", "unknown", null, 1, ["headers"], ["failed"]]) {
      expect(mutant(verdict, "evidence", word)).toBeUndefined();
      expect(mutant(verdict, "outcome", word)).toBeUndefined();
      expect(mutant({ kind: "leftOut", at, deliveryIds: [] }, "reason", word)).toBeUndefined();
      expect(mutant({ kind: "dropped", at, deliveryIds: [] }, "reason", word)).toBeUndefined();
    }
    for (const status of [1.5, "200", null, 1e300]) expect(mutant(verdict, "status", status)).toBeUndefined();
  });

  test("refuses invalid sizes, hashes, models and bodies", () => {
    const whole = { ...request, ...facts };
    for (const wrong of [-1, 1.5, "1", null, 1e300]) {
      for (const field of ["messageCount", "payloadBytes"]) expect(mutant(whole, field, wrong)).toBeUndefined();
      expect(mutant(requestEnd, "latencyMs", wrong)).toBeUndefined();
      expect(mutant(requestEnd, "headersOmitted", wrong)).toBeUndefined();
      expect(mutant(request, "messages", { bytes: wrong, isLeft: true })).toBeUndefined();
    }
    for (const wrong of ["", "0", "G".repeat(64), "0".repeat(65), 1, null])
      expect(mutant(whole, "payloadSha256", wrong)).toBeUndefined();
    for (const wrong of [null, "m", {}, { provider: "p" }, { provider: "p", id: "m".repeat(257) }])
      expect(mutant(request, "model", wrong)).toBeUndefined();
    for (const wrong of [null, [], {}, { bytes: 1 }, { bytes: 1, isLeft: "yes" }])
      expect(mutant(request, "payload", wrong)).toBeUndefined();
    expect(mutant(requestEnd, "evidence", undefined)).toBeUndefined();
  });

  test("refuses headers that are invalid, too many or too long", () => {
    const of = (headers: unknown): OutwardFrame | undefined => mutant(requestEnd, "headers", headers);
    const many = (count: number, length: number): unknown =>
      Object.fromEntries(Array.from({ length: count }, (_, i) => [`x-${i}`, "v".repeat(length)]));
    expect(of(many(64, 100))).toBeDefined();
    for (const wrong of [many(65, 1), many(64, 300), null, [], "x", { "A-b": "1" }, { "a b": "1" }, { a: 1 }])
      expect(of(wrong)).toBeUndefined();
    expect(parseOutwardFrame(JSON.stringify(requestEnd).replace("}", ',"headers":{"__proto__":"x"}}'))).toBeUndefined();
  });

  test("refuses a command that is not exactly one word", () => {
    for (const wrong of [
      "",
      "short",
      "-pi-rpcd-0123",
      "pi rpcd 0123456",
      `${command}\n`,
      `/${command}`,
      "x".repeat(129),
      1,
    ])
      expect(mutant(hello, "command", wrong)).toBeUndefined();
    expect(mutant(hello, "command", "x".repeat(128))).toBeDefined();
    for (const wrong of [null, 1, {}]) expect(mutant(hello, "sessionFile", wrong)).toBeUndefined();
    for (const wrong of [null, "1", 1.5]) expect(mutant(hello, "link", wrong)).toBeUndefined();
  });

  test("cuts errors to 1,024 characters, and never in the middle of one", () => {
    const long = "x".repeat(5_000);
    const cut = "x".repeat(1_024);
    expect(mutant(verdict, "error", long)).toHaveProperty("error", cut);
    expect(parse({ kind: "reply", at, rid: "1", ok: false, error: long })).toHaveProperty("error", cut);
    const fault = parse({ kind: "fault", at, where: long, error: `${"x".repeat(1_023)}😀` });
    expect(fault).toStrictEqual({ kind: "fault", at, where: cut, error: `${"x".repeat(1_023)}\ufffd` });
  });

  test("refuses a text that is nested too deeply, or has so many parts that parsing it would block the daemon", () => {
    const deep = `${"[".repeat(50_000)}${"]".repeat(50_000)}`;
    const many = `[${"{},".repeat(3_000_000)}{}]`;
    for (const data of [deep, many]) {
      expect(parseOutwardFrame(`{"kind":"reply","at":1,"rid":"1","ok":true,"data":${data}}`)).toBeUndefined();
      expect(parseOutwardFrame(`{"kind":"reload","at":1,"more":${data}}`)).toBeUndefined();
    }
  });

  test("refuses a notice with a number that is not finite", () => {
    const notice = (spentUsd: string): OutwardFrame | undefined => {
      const data = `{"scope":"session","budgetUsd":1,"spentUsd":${spentUsd},"level":"warning","action":"warn"}`;
      return parseOutwardFrame(`{"kind":"notice","at":1,"name":"cost/budgetReached","data":${data}}`);
    };
    expect(notice("0.5")).toBeDefined();
    expect(notice("1e999")).toBeUndefined();
  });

  test("refuses a former text of more than 1 MiB, and a path that is not absolute", () => {
    const former = { kind: "formerText", at, toolCallId: "t", path: "/f" };
    expect(mutant(former, "text", "é".repeat(524_288))).toBeDefined();
    expect(mutant(former, "text", `${"é".repeat(524_288)}x`)).toBeUndefined();
    for (const path of ["f", "", "/a\0b", `/${"x".repeat(4_096)}`])
      expect(parse({ ...former, text: null, path })).toBeUndefined();
    expect(parse({ ...former, text: null, toolCallId: "t".repeat(1_025) })).toBeUndefined();
  });

  test("refuses facts of more than 8 KiB, or nested too deep", () => {
    const debug = { kind: "debug", at, part: "p" };
    expect(mutant(debug, "facts", { text: "x".repeat(8_000) })).toBeDefined();
    expect(mutant(debug, "facts", { text: "x".repeat(8_200) })).toBeUndefined();
    for (const wrong of [null, [], "x"]) expect(mutant(debug, "facts", wrong)).toBeUndefined();
    const deep = `${"[".repeat(50_000)}${"]".repeat(50_000)}`;
    expect(parseOutwardFrame(`{"kind":"debug","at":1,"part":"p","facts":{"deep":${deep}}}`)).toBeUndefined();
  });

  test("never throws, whatever the text", () => {
    fc.assert(fc.property(fc.oneof(fc.json(), fc.string({ unit: "binary" })), (text) => void parseOutwardFrame(text)));
    for (const text of ["", "null", "[]", '"hello"', "{", "1", "[".repeat(100_000)]) {
      expect(parseOutwardFrame(text)).toBeUndefined();
    }
  });

  test("for a valid frame with anything inserted, returns undefined or a frame that parses to itself", () => {
    const fields = [...new Set(frames.flatMap((frame) => Object.keys(frame)))];
    const strange = fc.jsonValue({ maxDepth: 3 });
    const value = fc.oneof(
      strange,
      fc.array(strange),
      fc.constantFrom(...frames.flatMap((frame) => Object.values(frame))),
    );
    const changes = fc.dictionary(fc.constantFrom(...fields, "__proto__"), value, { minKeys: 1, maxKeys: 3 });
    fc.assert(
      fc.property(fc.constantFrom(...frames), changes, (frame, change) => {
        const parsed = parse({ ...frame, ...change });
        if (parsed !== undefined) expect(parse(parsed)).toStrictEqual(parsed);
      }),
      { numRuns: 5_000 },
    );
  });
});

describe("the guards of replies", () => {
  const hold = { held: ["d"], inserted: [], running: true };

  test("isHoldReply", () => {
    expect(isHoldReply(hold)).toBe(true);
    expect(isHoldReply({ ...hold, refused: [{ deliveryId: "d", why: "no" }] })).toBe(true);
    const wrongRefused = [null, {}, "d", [null], [{ deliveryId: "d" }], [{ deliveryId: "", why: "" }], new Array(1)];
    for (const refused of wrongRefused) expect(isHoldReply({ ...hold, refused })).toBe(false);
    for (const field of ["held", "inserted", "running"]) {
      for (const wrong of [undefined, null, "d", [1]]) expect(isHoldReply({ ...hold, [field]: wrong })).toBe(false);
    }
    for (const wrong of [undefined, null, 1, "x", [hold]]) expect(isHoldReply(wrong)).toBe(false);
  });

  test("isCarryReply", () => {
    expect(isCarryReply({ started: false })).toBe(true);
    for (const wrong of [undefined, null, {}, [], { started: 1 }, "started"]) expect(isCarryReply(wrong)).toBe(false);
  });
});
