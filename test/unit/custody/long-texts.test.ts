import { expect, test } from "vitest";
import { boundaryBefore, cutEntry, cutLine, valueAt } from "../../../server/custody/long-texts.ts";

const line = (entry: unknown): Buffer => Buffer.from(JSON.stringify(entry));
const long = "x".repeat(100_000);

/** The value at a path of a parsed entry. */
function valueIn(entry: unknown, path: string): unknown {
  return path
    .split("/")
    .slice(1)
    .map((token) => token.replaceAll("~1", "/").replaceAll("~0", "~"))
    .reduce((value, key) => (value as Record<string, unknown>)[key], entry);
}

test("a short entry is given as it is", () => {
  const entry = {
    type: "message",
    id: "a",
    parentId: null,
    message: { role: "user", content: 'né \u{1f600} "quoted"' },
  };
  expect(cutEntry(line(entry))).toEqual({ entry, cuts: [], bytes: line(entry).length });
});

test("a long text ends after its beginning, an image's data is left out, and the sizes are told", () => {
  const text = `${"é".repeat(50_000)}\n`;
  const data = Buffer.alloc(90_000).toString("base64");
  const content = [
    { type: "text", text },
    { type: "image", data, mimeType: "image/png" },
  ];
  const entry = { type: "message", id: "a", parentId: null, message: { role: "toolResult", content, isError: false } };
  const cut = cutEntry(line(entry));
  expect(cut?.cuts).toEqual([
    { path: "/message/content/0/text", bytes: 100_002, shown: 8_192 },
    { path: "/message/content/1/data", bytes: 120_000, shown: 0 },
  ]);
  expect(cut?.entry).toEqual({
    ...entry,
    message: {
      ...entry.message,
      content: [
        { type: "text", text: "é".repeat(4_096) },
        { type: "image", data: "", mimeType: "image/png" },
      ],
    },
  });
});

test("of an entry with many parts its fields near the root stay, and its size is bounded", () => {
  const many = Array.from({ length: 20_000 }, (_, index) => ({ index, text: `line ${index}` }));
  const entry = {
    type: "custom",
    customType: "note",
    data: { first: many, [`a/b~${"c".repeat(10)}`]: "word ".repeat(10_000), last: [many], ok: true },
    id: "b",
    parentId: "a",
    timestamp: "2026-01-01T00:00:00.000Z",
  };
  const cut = cutEntry(line(entry));
  const found = cut?.entry as typeof entry;
  expect(cut?.bytes).toBeLessThanOrEqual(256 * 1024);
  expect(found).toMatchObject({ type: "custom", id: "b", parentId: "a", timestamp: entry.timestamp });
  expect(found.data.ok).toBe(true);
  expect(found.data.first).toEqual(many.slice(0, found.data.first.length));
  expect(found.data.last).toEqual([]);
  expect(cut?.cuts.map(({ path }) => path)).toEqual(["/data/first", "/data/a~1b~0cccccccccc", "/data/last"]);
  for (const { path, bytes } of cut?.cuts ?? []) {
    const value = valueIn(entry, path);
    expect(bytes).toBe(Buffer.byteLength(JSON.stringify(value)) - (typeof value === "string" ? 2 : 0));
  }
});

test("of an entry with very many values only the first are looked at, and the fields near its root", () => {
  const numbers = Array.from({ length: 50_000 }, () => 1);
  const named = Object.fromEntries(numbers.map((one, index) => [`k${index}`, one]));
  const message = { role: "toolResult", details: { numbers, after: 1 }, isError: true };
  const cut = cutEntry(line({ type: "message", message, id: "a", parentId: null }));
  // `numbers` is looked at, too.
  const details = { numbers: numbers.slice(0, 19_999) };
  expect(cut?.entry).toEqual({ type: "message", message: { ...message, details }, id: "a", parentId: null });
  expect(cut?.cuts.map(({ path }) => path)).toEqual(["/message/details/numbers", "/message/details"]);
  const fields = cutEntry(line({ type: "message", id: "a", parentId: null, message: named }));
  expect(Object.keys(fields?.entry["message"] as object).length).toBeLessThan(20_000);
  const bytes = line({ ...named, last: 1 });
  expect([valueAt(bytes, "/k19999"), valueAt(bytes, "/last")]).toEqual([
    { start: 208_889, end: 208_890, isString: false },
    undefined,
  ]);
});

test("the ids of what an extension stores are known, although more fields come before them", () => {
  const fields = Object.fromEntries(Array.from({ length: 50_000 }, (_, index) => [`k${index}`, 1]));
  const bytes = line({ type: "custom", ...fields, id: "b", parentId: "a" });
  const cut = cutLine({ start: 0, end: bytes.length, bytes, head: bytes, tail: bytes }, { id: "b", parentId: "a" });
  expect(cut?.entry).toMatchObject({ type: "custom", k0: 1, id: "b", parentId: "a" });
});

test("a path that leads deep into a long value is followed in one pass", () => {
  const depth = 1_000;
  const bytes = Buffer.from(`${'{"a":'.repeat(depth)}[${"1,".repeat(6_000_000)}1]${"}".repeat(depth)}`);
  expect(valueAt(bytes, "/a".repeat(depth))).toEqual({ start: 5 * depth, end: bytes.length - depth, isString: false });
});

test("a value that is left out between others leaves JSON", () => {
  const filled = Array.from({ length: 52 }, () => "y".repeat(4_000));
  const short = Array.from({ length: 30 }, () => "v".repeat(200));
  const last = "z".repeat(300);
  const deep = { type: "m", id: "a", parentId: null, d: { e: { filled, f: { ...short, last } }, g: [...short, last] } };
  const cut = cutEntry(line(deep));
  const found = cut?.entry as typeof deep;
  const kept = Object.keys(found.d.e.f).length - 1;
  expect(kept).toBeGreaterThan(0);
  expect(kept).toBeLessThan(30);
  expect(found.d.e).toEqual({ filled, f: { ...short.slice(0, kept), last: "" } });
  // An array has no gaps.
  expect(found.d.g).toEqual([]);
  expect(cut?.cuts.map(({ path }) => path)).toEqual(["/d/e/f/last", "/d/e/f", "/d/g"]);
});

test("what is nested too deeply is emptied, and what is not JSON is no entry", () => {
  const nested = `{"type":"custom","id":"a","parentId":null,"data":${"[".repeat(30_000)}${"]".repeat(30_000)}}`;
  const cut = cutEntry(Buffer.from(nested));
  expect(cut?.entry).toMatchObject({ type: "custom", id: "a" });
  expect(JSON.stringify(cut?.entry).length).toBeLessThan(1_000);
  for (const text of [
    "",
    "[]",
    '"a"',
    "{",
    '{"a":}',
    '{"a":1,}',
    `{"a":"${long}`,
    `{"a":"${long}" "b":1}`,
    `{${long}}`,
  ]) {
    expect(cutEntry(Buffer.from(text))).toBeUndefined();
  }
});

test("a value is found by its path, the last one of several with the same name", () => {
  const text = '{ "a" : [ 1, {"b/c~":"x\\"y"} , true ], "a2": {"": -1.5e3}, "a": [null, {"b/c~":"two"}] }';
  const at = (path: string): string | undefined => {
    const range = valueAt(Buffer.from(text), path);
    return range && text.slice(range.start, range.end);
  };
  expect(at("/a/1/b~1c~0")).toBe("two");
  expect(at("/a/0")).toBe("null");
  expect(at("/a2/")).toBe("-1.5e3");
  expect(at("")).toBe(text.trim());
  for (const path of ["/b", "/a/7", "/a/1/b~1c~0/0", "/a2/x", "/__proto__"]) expect(at(path)).toBeUndefined();
  expect(valueAt(Buffer.from('{"a":'), "/a")).toBeUndefined();
});

test("a piece never ends within a character, an escape or a pair of surrogates", () => {
  const texts = ["plain", "é\u{1f600}", "\\ud83d\\ude00", "\\n\\\\", '\\"', "\\u00e9", "\\ud83d", "\\\\\\\\\\u0041"];
  for (const one of texts) {
    for (const other of texts) {
      const bytes = Buffer.from(`${one}${other}${one}`);
      for (let from = 0; from < bytes.length; ) {
        const ends = Array.from({ length: bytes.length - from }, (_, index) =>
          boundaryBefore(bytes, from, from + index + 1),
        );
        for (const end of ends) expect(() => JSON.parse(`"${bytes.toString("utf8", from, end)}"`)).not.toThrow();
        for (const end of ends) expect(bytes.toString("utf8", from, end)).not.toContain("\ufffd");
        const whole = ends.find((end) => end > from) ?? bytes.length;
        const piece = JSON.parse(`"${bytes.toString("utf8", from, whole)}"`) as string;
        if (![one, other].includes("\\ud83d")) expect(piece).toBe(piece.toWellFormed());
        from = whole;
      }
    }
  }
});

const inMessage = (message: object): object => ({ type: "message", id: "a", parentId: null, timestamp: "t", message });
const fields = (count: number, value: unknown): object =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`k${at}`, value]));

test("a cut is found after as many values as are looked at before it", () => {
  const content = [...Array.from({ length: 6_000 }, () => 0), "z".repeat(90_000)];
  const bytes = line(inMessage({ ...fields(15_000, 0), content }));
  const [cut] = cutEntry(bytes)?.cuts ?? [];
  expect(cut?.path).toBe("/message/content/6000");
  expect(valueAt(bytes, cut?.path ?? "")?.isString).toBe(true);
});

test.for<[string, object]>([
  ["after as many values as are looked at", { x: Array.from({ length: 20_000 }, () => 1), ...fields(12_000, [1]) }],
  [
    "with paths that are too long",
    { ["p".repeat(1_900)]: Array.from({ length: 9_000 }, () => ({ ["q".repeat(150)]: {} })) },
  ],
])("the cuts of many objects %s count as part of the entry", ([, message]) => {
  const cut = cutEntry(line(inMessage({ ...message, pad: long })));
  expect(cut?.cuts.length).toBeGreaterThan(100);
  expect(cut?.bytes).toBeLessThanOrEqual(256 * 1_024);
});

test("an entry with more cuts than fit is cut itself", () => {
  const key = "n".repeat(16);
  // Each of the objects within each other has too much, which is known only when the last of them has ended.
  const nested = (depth: number): object => (depth === 0 ? {} : { [key]: nested(depth - 1), ["q".repeat(2_100)]: {} });
  const cut = cutEntry(line(inMessage({ pad: "p".repeat(200_000), ...fields(9_000, "v".repeat(8)), n: nested(100) })));
  expect(cut?.cuts.filter(({ path }) => path === "")).toEqual([expect.objectContaining({ shown: 0 })]);
  expect(cut?.bytes).toBeLessThanOrEqual(256 * 1_024 + 512);
});
