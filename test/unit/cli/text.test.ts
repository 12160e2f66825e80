import { describe, expect, test } from "vitest";
import { duration, mebibytes } from "../../../cli/format.ts";
import { oneLine, printable, shorten, table, wrap } from "../../../cli/text.ts";

test("a printable text keeps its lines and loses cursor movements", () => {
  expect(printable("a\tb\r\nc\u001b]0;title\u0007\u009b2J\rd")).toBe("a\tb\nc]0;title2Jd");
});

test("several lines are joined into one", () => {
  expect(oneLine("  first\n\n  second\tthird \n")).toBe("first | second third");
});

test("long text is cut between characters", () => {
  expect(shorten("abc", 3)).toBe("abc");
  expect(shorten("ab😀d", 3)).toBe("ab…");
  expect(shorten("😀😀😀", 2)).toBe("😀…");
});

describe("a table", () => {
  const rows = [
    ["ID", "DIRECTORY"],
    ["long-id", "/somewhere/far"],
  ];

  test("has columns as wide as their content", () => {
    expect(table(rows)).toEqual(["ID       DIRECTORY", "long-id  /somewhere/far"]);
  });

  test("counts the columns of a terminal, of which East Asian characters and emoji take two", () => {
    const names = ["測試", "한국어", "日本語カナ", "ﾊﾝｶｸ", "😀", "❤️", "👩‍👩‍👧", "🇩🇪", "é", "e\u0301", "Größe", "…"];
    const columns = [4, 6, 10, 4, 2, 2, 2, 2, 1, 1, 5, 1];
    const drawn = table(names.map((name) => [name, "|"]));
    expect(drawn).toEqual(names.map((name, index) => `${name}${" ".repeat(12 - (columns[index] ?? 0))}|`));
  });

  test("is cut between the characters that a person sees", () => {
    expect(table([["測試測試"]], 6)).toEqual(["測試…"]);
    expect(table([["測試測試"]], 5)).toEqual(["測試…"]);
    expect(table([["測試測試"]], 4)).toEqual(["測…"]);
    expect(table([["ae\u0301👩‍👩‍👧b"]], 4)).toEqual(["ae\u0301…"]);
  });

  test("is cut at the width of the terminal", () => {
    expect(table(rows, 15)).toEqual(["ID       DIREC…", "long-id  /some…"]);
  });

  test("of nothing is empty", () => {
    expect(table([])).toEqual([]);
  });
});

test("words are wrapped, and one that is too long has its own line", () => {
  expect(wrap("one two three", 8)).toEqual(["one two", "three"]);
  expect(wrap("a unbreakable b", 5)).toEqual(["a", "unbreakable", "b"]);
});

test.each([
  [0, "0 s"],
  [59_999, "59 s"],
  [60_000, "1 min"],
  [3_600_000, "1 h 0 min"],
  [90_000_000, "1 d 1 h"],
  [-5, "0 s"],
])("%i ms are %s", (ms, words) => {
  expect(duration(ms)).toBe(words);
});

test("bytes are shown in MiB", () => {
  expect(mebibytes(80 * 1024 * 1024)).toBe("80.0 MiB");
});
