import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { isBounded, isOneObject, MAX_DEPTH, MAX_PARTS, scan, scanState } from "../../../server/pi/structure.ts";

const isOne = (text: string): boolean => isOneObject(Buffer.from(text));

/** Text with many quotes, escapes and brackets, often longer than the part that is read byte by byte. */
const text = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.string({ unit: fc.constantFrom('"', "\\", "{", "}", "[", "]", "a", "é", "\u2028"), maxLength: 600 }),
  fc
    .tuple(fc.nat(400), fc.string({ unit: fc.constantFrom('"', "\\", "}", "x"), maxLength: 8 }), fc.nat(400))
    .map(([before, middle, behind]) => "x".repeat(before) + middle + "y".repeat(behind)),
);
const json = fc.letrec<{ value: unknown; object: Record<string, unknown> }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small" },
    text,
    fc.constant(null),
    fc.boolean(),
    fc.double(),
    fc.array(tie("value"), { maxLength: 4 }),
    tie("object"),
  ),
  object: fc.dictionary(text, tie("value"), { maxKeys: 4 }),
}));
const object = json.object.map((value) => JSON.stringify(value));

function parses(bytes: Buffer): boolean {
  try {
    const value: unknown = JSON.parse(bytes.toString("utf8"));
    return typeof value === "object" && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}

describe("isOneObject", () => {
  test("is true for every object that JSON.stringify writes", () => {
    fc.assert(
      fc.property(json.object, fc.constantFrom(undefined, 1), (value, space) => {
        expect(isOne(JSON.stringify(value, undefined, space))).toBe(true);
      }),
      { numRuns: 500 },
    );
  });

  test("is false for every proper prefix", () => {
    fc.assert(
      fc.property(object, (one) => {
        const bytes = Buffer.from(one);
        for (let end = 0; end < bytes.length; end += 1) expect(isOneObject(bytes.subarray(0, end))).toBe(false);
      }),
    );
  });

  test("is false for two objects, and for one with bytes before or after it", () => {
    fc.assert(
      fc.property(object, object, fc.constantFrom("", " ", ",", "\n"), (one, other, between) => {
        expect(isOne(one + between + other)).toBe(false);
      }),
    );
    fc.assert(
      fc.property(object, fc.string({ minLength: 1, unit: "binary" }), (one, more) => {
        expect(isOne(one + more)).toBe(false);
        expect(isOne(`[${one}`)).toBe(false);
        expect(isOne(` ${one}`)).toBe(false);
      }),
    );
  });

  test("is true for a changed record that JSON.parse still accepts as an object", () => {
    const change = fc.tuple(fc.nat(), fc.constantFrom(...Buffer.from('{}[]"\\a,')));
    fc.assert(
      fc.property(object, change, (one, [place, byte]) => {
        const bytes = Buffer.from(one);
        bytes[place % bytes.length] = byte;
        if (parses(bytes)) expect(isOneObject(bytes)).toBe(bytes[0] === 0x7b && bytes.at(-1) === 0x7d);
      }),
      { numRuns: 2_000 },
    );
  });

  test("detects objects that close early: a text that passes can be nested inside another object", () => {
    const piece = fc.constantFrom("{", "}", "[", "]", '"', "\\", '"a":', '"b"', ",", "1", '"x":{}', "x".repeat(130));
    const forged = fc.array(piece, { maxLength: 14 }).map((pieces) => `{${pieces.join("")}}`);
    fc.assert(
      fc.property(forged, (record) => {
        const outer = `{"id":1,"record":${record},"end":true}`;
        if (!isOne(record)) expect(parses(Buffer.from(record))).toBe(false);
        else if (parses(Buffer.from(outer))) {
          expect(Object.keys(JSON.parse(outer) as object)).toEqual(["id", "record", "end"]);
        }
      }),
      { numRuns: 5_000 },
    );
  });

  test.each([
    "",
    "{",
    "}",
    "}{",
    "[]",
    '"{}"',
    "{}}",
    "{{}",
    "{]}",
    "{[}]}",
    "{[}",
    '{"a":[1}',
    '{"a":1]}',
    '{"a":"}',
    '{"a":"\\"}',
    '{"a":"\\\\\\"}',
    `{"a":"${"x".repeat(300)}}`,
    `{"a":"${"x".repeat(300)}\\"}`,
    `{"a":"${"x".repeat(126)}\\\\\\"}`,
    '{"type":"message_update"}{"type":"message_update"}',
    '{"type":"message_update"}},"method":"x","params":{"x":{}',
    '{"type":"message_update"}},"method":"x","params":{"x":{}}',
    '{"type":"message_update"},"method":"x","params":{}',
  ])("refuses %s", (record) => {
    expect(isOne(record)).toBe(false);
  });

  test("recognises an escaped quote by the parity of its backslashes, also where the search for far quotes begins", () => {
    for (let before = 0; before < 280; before += 1) {
      for (let slashes = 0; slashes < 6; slashes += 1) {
        const inside = "x".repeat(before) + "\\".repeat(slashes);
        expect(isOne(`{"a":"${inside}"}`)).toBe(slashes % 2 === 0);
        expect(isOne(`{"a":"${inside}"}"}`)).toBe(slashes % 2 === 1);
      }
    }
  });

  test("accepts objects up to the greatest depth, of both kinds of brackets, and none deeper", () => {
    const nested = (depth: number): string => `{"a":${"[".repeat(depth - 1)}${"]".repeat(depth - 1)}}`;
    expect(isOne(nested(MAX_DEPTH))).toBe(true);
    expect(isOne(nested(MAX_DEPTH + 1))).toBe(false);
    expect(isOne(`${'{"a":'.repeat(MAX_DEPTH)}1${"}".repeat(MAX_DEPTH)}`)).toBe(true);
    expect(isOne(`${'{"a":'.repeat(MAX_DEPTH + 1)}1${"}".repeat(MAX_DEPTH + 1)}`)).toBe(false);
    expect(isOne("{}")).toBe(true);
  });

  test("never throws, whatever the bytes", () => {
    fc.assert(fc.property(fc.uint8Array(), (bytes) => typeof isOneObject(Buffer.from(bytes)) === "boolean"));
  });

  test("takes linear time, also for nothing but escapes", () => {
    const escapes = (length: number): Buffer => Buffer.from(`{"a":"${'\\"'.repeat(length)}"}`);
    const slashes = Buffer.from(`{"a":"${"x".repeat(200)}${"\\\\".repeat(2_000_000)}"}`);
    expect(isOneObject(escapes(2_000_000))).toBe(true);
    expect(isOneObject(slashes)).toBe(true);
  });
});

describe("isBounded", () => {
  const bounded = (text: string): boolean => isBounded(Buffer.from(text));

  test("is true for the output of JSON.stringify, whatever strings contain", () => {
    fc.assert(fc.property(object, bounded));
    expect(bounded(JSON.stringify({ text: "[".repeat(MAX_DEPTH + 1) + "\\".repeat(1_001), after: [] }))).toBe(true);
  });

  test("is false for bytes that are nested too deeply, and for too many parts", () => {
    const nested = (depth: number): string => "[".repeat(depth) + "]".repeat(depth);
    expect([bounded(nested(MAX_DEPTH)), bounded(nested(MAX_DEPTH + 1))]).toEqual([true, false]);
    expect(bounded(`[${"1,".repeat(MAX_PARTS)}1]`)).toBe(false);
    expect(bounded(`[${"{},".repeat(MAX_PARTS / 2)}1]`)).toBe(false);
    expect(bounded(`[${"1,".repeat(MAX_PARTS - 2)}1]`)).toBe(true);
  });
});

/** {@link isOneObject} in steps that end at these places. */
function inSteps(record: Buffer, places: readonly number[]): boolean {
  const state = scanState();
  for (const limit of [...places.map((place) => place % (record.length + 1)).sort((a, b) => a - b), record.length]) {
    const isOne = scan(record, state, limit);
    if (isOne !== undefined) return isOne;
  }
  return expect.unreachable("it must end at the last byte");
}

describe("a scan in steps", () => {
  const piece = fc.constantFrom(
    "{",
    "}",
    "[",
    "]",
    '"',
    "\\",
    '\\"',
    "\\u0022",
    '"a":',
    '"b"',
    ",",
    "x".repeat(130),
    "é",
  );
  const forged = fc.array(piece, { maxLength: 20 }).map((pieces) => `{${pieces.join("")}}`);
  const places = fc.array(fc.nat(), { maxLength: 30 });

  test("has the same result wherever the record is cut", () => {
    fc.assert(
      fc.property(fc.oneof(object, forged), places, (text, cuts) => {
        const record = Buffer.from(text);
        expect(inSteps(record, cuts)).toBe(isOneObject(record));
      }),
      { numRuns: 5_000 },
    );
  });

  test.each([
    ["a string of escapes only", `{"a":"${"\\\\".repeat(700)}"}`],
    ["an escaped quote after many backslashes", `{"a":"${"\\\\".repeat(700)}\\""}`],
    ["a string that never ends", `{"a":"${"x".repeat(1_500)}}`],
    ["a string that ends in an escape", `{"a":"${"x".repeat(700)}\\"}`],
    ["an object that closes early", `{"a":"${"\\".repeat(400)}"},"seq":1}`],
  ])("is not misled by %s, cut at each byte", (_, text) => {
    const record = Buffer.from(text);
    for (let at = 0; at <= record.length; at += 1) expect(inSteps(record, [at])).toBe(isOneObject(record));
    expect(inSteps(record, [...record.keys()])).toBe(isOneObject(record));
  });
});
