import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { methods } from "../../../protocol/methods.ts";
import { patternWords } from "../../../protocol/pattern-words.ts";
import { createValidator } from "../../../protocol/validation.ts";
import { configurationSchema } from "../../../server/configuration/settings.ts";
import { Literal } from "../../../server/custody/search/literal.ts";

const server = join(import.meta.dirname, "../../../server");

/** Every `pattern` below a schema, with its place. */
function patternsOf(value: unknown, at: string): [place: string, pattern: string][] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, part]): [string, string][] =>
    name === "pattern" && typeof part === "string" ? [[at, part]] : patternsOf(part, `${at}/${name}`),
  );
}

test("no pattern for untrusted text takes more than linear time", () => {
  const patterns = Object.entries(methods).flatMap(([name, { params }]) => patternsOf(params, name));
  expect(patterns.length).toBeGreaterThan(20);
  // An unbounded repetition inside a repeated one causes backtracking.
  const doubtful = patterns.filter(([, pattern]) => /[*+]\)?[^()]*\)(?:[*+]|\{\d+,)/.test(pattern));
  expect(doubtful).toEqual([]);
  // So do lookbehind, and unbounded lookahead.
  expect(patterns.filter(([, pattern]) => /\\[1-9]|\(\?<?[=!][^)]*[*+]/.test(pattern))).toEqual([]);
});

test("every pattern of a param or a setting has words for errors, and no other pattern has", () => {
  const used = patternsOf([Object.values(methods).map(({ params }) => params), configurationSchema()], "").map(
    ([, pattern]) => pattern,
  );
  expect(Object.keys(patternWords).toSorted()).toEqual([...new Set(used)].toSorted());
});

test("a text or a name of the wrong form is described in words", () => {
  const validator = createValidator();
  expect(validator.params("session/rename", { sessionId: "s", name: "" })).toEqual([
    { path: "/name", message: "must be 1 to 200 characters without control characters, the first not a -" },
  ]);
  expect(validator.params("session/create", { cwd: "/", labels: { "a b": "" } })).toEqual([
    {
      path: "/labels",
      message: "has a wrong name: a name must be 1 to 64 letters, digits or . _ / -, the first a letter or digit",
    },
  ]);
});

test("no regular expression of the daemon is built from untrusted text", () => {
  const files = readdirSync(server, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"));
  const making = files.filter((name) => readFileSync(join(server, name), "utf8").includes("new RegExp("));
  // Built from the paths of the method table; and a literal, which runs in a thread with a limit in time.
  expect(making.toSorted()).toEqual(["custody/search/literal.ts", "edge/rest.ts"]);
  const literal = new Literal(`${"a".repeat(255)}b`);
  expect(literal.in("a".repeat(1024 * 1024))).toBeUndefined();
  for (const sign of "^$\\.*+?()[]{}|/-,:=!<>#&%@~") {
    expect([sign, new Literal(sign).in(`x${sign}`), new Literal(`x${sign}`).in("xx")]).toEqual([
      sign,
      { start: 1, length: 1 },
      undefined,
    ]);
  }
});

test("a session's name has no control characters, of which pi and the daemon would keep different ones", () => {
  const validator = createValidator();
  const findings = (name: string) => [
    ...validator.params("session/rename", { sessionId: "s", name }),
    ...validator.params("session/create", { cwd: "/", name }),
  ];
  for (const unit of [0x00, 0x09, 0x0a, 0x1f, 0x7f, 0x80, 0x85, 0x9b, 0x9f, 0xd800]) {
    expect([unit, findings(`a${String.fromCharCode(unit)}b`).length]).toEqual([unit, 2]);
  }
  expect(findings("Größe 測試 😀")).toEqual([]);
});
