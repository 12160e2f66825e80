import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { FramingError, type FramingName, framingNames, framings } from "../../../../cli/connect/framing.ts";

interface Read {
  readonly messages: string[];
  readonly oversize: number[];
  readonly isWhole: boolean;
}

function read(name: FramingName, chunks: readonly Buffer[], maxMessageBytes = 1_000): Read {
  const messages: string[] = [];
  const oversize: number[] = [];
  const reader = framings[name].reader(
    { onMessage: (message) => messages.push(message.toString()), onOversize: (bytes) => oversize.push(bytes) },
    maxMessageBytes,
  );
  for (const chunk of chunks) reader.push(chunk);
  const isWhole = reader.end();
  return { messages, oversize, isWhole };
}

function framed(name: FramingName, text: string): Buffer {
  const message = Buffer.from(text);
  const { head, tail } = framings[name].around(message);
  return Buffer.concat([Buffer.from(head), message, Buffer.from(tail)]);
}

function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const sorted = [0, ...places.map((place) => place % (bytes.length + 1)).toSorted((a, b) => a - b), bytes.length];
  return sorted.slice(1).map((end, index) => bytes.subarray(sorted[index], end));
}

describe.each(framingNames)("the framing %s", (name) => {
  test("returns every message, however its bytes are cut", () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ unit: "binary", minLength: 1, maxLength: 60 }).map((text) => JSON.stringify(text))),
        fc.array(fc.nat()),
        (messages, places) => {
          const bytes = Buffer.concat(messages.map((message) => framed(name, message)));
          const found = read(name, cut(bytes, places));
          expect(found).toEqual({ messages, oversize: [], isWhole: true });
        },
      ),
    );
  });

  test("skips a message over the limit, reports its length, and continues after it", () => {
    const bytes = Buffer.concat(["1", `"${"x".repeat(1_999)}"`, "2"].map((text) => framed(name, text)));
    expect(read(name, [bytes])).toEqual({ messages: ["1", "2"], oversize: [2_001], isWhole: true });
    expect(read(name, cut(bytes, [40, 900, 1_500])).oversize).toEqual([2_001]);
  });

  test("accepts a complete last message that lacks only the bytes after it", () => {
    const bytes = Buffer.concat([framed(name, "1"), framed(name, "[2]")]);
    const end = bytes.lastIndexOf("]") + 1;
    expect(read(name, [bytes.subarray(0, end)])).toEqual({ messages: ["1", "[2]"], oversize: [], isWhole: true });
    const long = framed(name, `"${"x".repeat(1_999)}"`);
    expect(read(name, [long.subarray(0, long.lastIndexOf('"') + 1)])).toMatchObject({
      oversize: [2_001],
      isWhole: true,
    });
  });

  test("detects a stream that ends within a message", () => {
    const bytes = framed(name, '{"id":1}');
    expect(read(name, [bytes.subarray(0, 5)])).toMatchObject({ messages: [], isWhole: false });
    const short = bytes.subarray(0, bytes.lastIndexOf("}"));
    expect(read(name, [short])).toMatchObject({ messages: [], isWhole: false });
    expect(read(name, [bytes]).isWhole).toBe(true);
  });
});

describe("heads", () => {
  const accepted: readonly (readonly [string, string])[] = [
    ["in any case, with blanks", "content-LENGTH :  2 \r\n\r\n{}"],
    ["with other fields", "X-Editor: vi\r\nContent-Length: 2\r\n\r\n{}"],
    ["with the charset", 'Content-Length: 2\r\nContent-Type: application/vscode-jsonrpc; charset="utf-8"\r\n\r\n{}'],
    [
      "with the charset's old name",
      "Content-Length: 2\r\nContent-Type: application/vscode-jsonrpc; charset=utf8\r\n\r\n{}",
    ],
  ];
  test.each(accepted)("are understood %s", (_what, text) => {
    expect(read("content-length", [Buffer.from(text)]).messages).toEqual(["{}"]);
  });

  const refused: readonly (readonly [string, string])[] = [
    ["without a length", "Content-Type: x\r\n\r\n{}"],
    ["with two lengths", "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}"],
    ["with a negative length", "Content-Length: -2\r\n\r\n{}"],
    ["with a length in hexadecimal", "Content-Length: 0x2\r\n\r\n{}"],
    ["with a length of many digits", `Content-Length: ${"9".repeat(16)}\r\n\r\n{}`],
    ["with another charset", "Content-Length: 2\r\nContent-Type: x; charset=latin1\r\n\r\n{}"],
    ["with a line that is not a field", "Content-Length: 2\r\n{}\r\n\r\n{}"],
    ["that are lines of JSON", `{"jsonrpc":"2.0"}\n\r\n\r\n`],
    ["that never end", "X: ".padEnd(5_000, "x")],
    ["that never end, in pieces", "X: ".padEnd(5_000, "x")],
  ];
  test.each(refused)("%s break the stream", (what, text) => {
    const bytes = Buffer.from(text);
    const chunks = what.endsWith("pieces") ? cut(bytes, [1, 2, 1_000, 4_000]) : [bytes];
    expect(() => read("content-length", chunks)).toThrow(FramingError);
  });

  test("with length 0 make an empty message, which is not JSON", () => {
    expect(read("content-length", [Buffer.from("Content-Length: 0\r\n\r\n")]).messages).toEqual([""]);
  });
});
