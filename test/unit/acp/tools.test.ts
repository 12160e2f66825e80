import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { partialJson } from "../../../acp/updates/partial-json.ts";
import {
  type ResultContext,
  resultFields,
  runningContent,
  type ToolResult,
} from "../../../acp/updates/tool-results.ts";
import { describeTool } from "../../../acp/updates/tools.ts";
import { expectValidUpdates } from "../../helpers/acp-schema.ts";

const place = { cwd: "/project", home: "/home/me" };
const names = ["read", "edit", "write", "bash", "powershell", "grep", "find", "ls", "codemode", "mcp__web__fetch_page"];

function result(name: string, args: unknown, given: Partial<ToolResult> = {}, context: Partial<ResultContext> = {}) {
  const fields = resultFields(
    { name, args },
    { content: [{ type: "text", text: "out" }], details: undefined, isError: false, ...given },
    { place, ...context },
  );
  expectValidUpdates([{ sessionUpdate: "tool_call_update", toolCallId: "t", ...fields }]);
  return fields;
}

const block = (text: string): object => ({ type: "content", content: { type: "text", text } });
const text = (words: string): readonly object[] => [{ type: "text", text: words }];

describe("a tool call", () => {
  test.each([
    ["read", { path: "src/a.ts", offset: 7 }, "read", "Read src/a.ts", [{ path: "/project/src/a.ts", line: 7 }]],
    ["read", { path: "a", offset: -1 }, "read", "Read a", [{ path: "/project/a" }]],
    ["edit", { path: "@../b" }, "edit", "Edit @../b", [{ path: "/b" }]],
    ["write", { path: "~/c" }, "edit", "Write ~/c", [{ path: "/home/me/c" }]],
    ["read", { path: "file:///d%20e" }, "read", "Read file:///d%20e", [{ path: "/d e" }]],
    ["bash", { command: "\n  make\ttest \nmore" }, "execute", "make test", []],
    ["grep", { pattern: "x+", path: "src" }, "search", "grep x+ in src", [{ path: "/project/src" }]],
    ["find", { pattern: "*.ts" }, "search", "find *.ts", []],
    ["ls", {}, "search", "ls", []],
    ["codemode", { limit: 3, code: "a\nb" }, "other", "codemode: a b", []],
    ["mcp__web__fetch_page", { url: "http://x" }, "fetch", "mcp__web__fetch_page: http://x", []],
    ["webFetch", null, "fetch", "webFetch", []],
    ["prefetched", [], "other", "prefetched", []],
    ["bash", undefined, "execute", "bash", []],
    ["", 7, "other", "tool", []],
    ["toString", {}, "other", "toString", []],
  ])("%s %j is of the kind %s: %s", (name, args, kind, title, locations) => {
    expect(describeTool({ name, args }, place)).toEqual({ kind, title, locations });
  });

  test("its title is short, and never half of a character", () => {
    const { title } = describeTool({ name: "bash", args: { command: `${"a".repeat(198)}😀😀` } }, place);
    expect(title).toBe(`${"a".repeat(198)}…`);
  });
});

describe("the result of a tool", () => {
  test("bash: a fence, and the exit code", () => {
    expect(result("bash", {}, { content: text("a```b") })).toEqual({
      status: "completed",
      content: [block("````\na```b\n````")],
      _meta: { "pi-rpcd": { exitCode: 0 } },
    });
    const failed = { content: text("x\n\nCommand exited with code 3"), isError: true };
    expect(result("bash", {}, failed)).toMatchObject({ status: "failed", _meta: { "pi-rpcd": { exitCode: 3 } } });
    expect(result("bash", {}, { content: text("Command aborted"), isError: true })).not.toHaveProperty("_meta");
  });

  test("edit: a diff for each entry, in each form that pi takes, and the line of the first change", () => {
    const edit = { oldText: "a", newText: "b" };
    const diff = { type: "diff", path: "/project/f", ...edit };
    const details = { diff: "shown", patch: "@@", firstChangedLine: 4 };
    expect(result("edit", { path: "f", edits: [edit, edit] }, { details })).toEqual({
      status: "completed",
      content: [diff, diff],
      locations: [{ path: "/project/f", line: 4 }],
      rawOutput: { details: { patch: "@@", firstChangedLine: 4 } },
    });
    for (const edits of [JSON.stringify([edit]), JSON.stringify(edit), edit]) {
      expect(result("edit", { path: "f", edits }).content).toEqual([diff]);
    }
    expect(result("edit", { path: "f", ...edit }).content).toEqual([diff]);
    expect(result("edit", { path: "f", edits: [edit] }, { isError: true }).content).toEqual([block("```\nout\n```")]);
  });

  test("write: a diff if the former text is known, else the new text", () => {
    const args = { path: "f", content: "new" };
    expect(result("write", args, {}, { formerText: "old" }).content).toEqual([
      { type: "diff", path: "/project/f", oldText: "old", newText: "new" },
    ]);
    expect(result("write", args, {}, { formerText: null }).content).toMatchObject([{ oldText: null }]);
    expect(result("write", args).content).toEqual([block("```\nnew\n```")]);
  });

  test("images and the text of other tools are shown as they are, other blocks as JSON", () => {
    const image = { type: "image", data: "AAAA", mimeType: "image/png" };
    const content = [{ type: "text", text: "**x**" }, image, { type: "audio", n: 1 }, null, { type: "image" }];
    expect(result("mcp__x", {}, { content }).content).toEqual([
      block("**x**"),
      { type: "content", content: image },
      block('```\n{\n  "type": "audio",\n  "n": 1\n}\n```'),
    ]);
  });

  test("details keep what the content does not show", () => {
    const truncation = { truncated: true, content: "long" };
    expect(result("bash", {}, { details: { truncation, fullOutputPath: "/f" } }).rawOutput).toEqual({
      details: { truncation: { truncated: true }, fullOutputPath: "/f" },
    });
    expect(result("mcp__x", {}, { details: { diff: "d" } }).rawOutput).toEqual({ details: { diff: "d" } });
    expect(result("read", {}, { details: {} })).not.toHaveProperty("rawOutput");
  });

  test("a running tool shows the last 16 KiB, without half of a character", () => {
    const [shown] = runningContent("bash", text(`${"x".repeat(5)}😀${"y".repeat(16_383)}`));
    expect(shown).toEqual(block(`\`\`\`\n${"y".repeat(16_383)}\n\`\`\``));
  });

  test("no JSON value anywhere breaks it", () => {
    const args = fc.oneof(
      fc.jsonValue(),
      fc.record({
        path: fc.jsonValue(),
        edits: fc.jsonValue(),
        content: fc.jsonValue(),
        command: fc.jsonValue(),
        pattern: fc.jsonValue(),
        offset: fc.jsonValue(),
      }),
    );
    const values = fc.tuple(fc.constantFrom(...names), args, fc.jsonValue(), fc.jsonValue(), fc.boolean());
    fc.assert(
      fc.property(values, ([name, given, content, details, isError]) => {
        const call = {
          sessionUpdate: "tool_call" as const,
          toolCallId: "t",
          ...describeTool({ name, args: given }, place),
        };
        expectValidUpdates([call]);
        result(name, given, { content, details, isError });
      }),
      { numRuns: 300 },
    );
  });

  test("values that are nested too deeply to be sent are left out", () => {
    const deep = JSON.parse(`${"[".repeat(3_000)}${"]".repeat(3_000)}`) as unknown;
    expect(result("mcp__x", {}, { content: [{ type: "x", deep }], details: deep })).toEqual({
      status: "completed",
      content: [],
    });
  });
});

describe("JSON that is not complete yet", () => {
  test.each([
    ['{"path":"a', { path: "a" }],
    ['{"path":"a\\', { path: "a" }],
    ['{"path":"a\\\\', { path: "a\\" }],
    ['{"path":"a\\u00e', { path: "a" }],
    ['{"path":"a\\"', { path: 'a"' }],
    ['{"path":"a","co', { path: "a" }],
    ['{"path":"a","content":', { path: "a" }],
    ['{"path":"a","n":tr', { path: "a" }],
    ['{"edits":[{"oldText":"x"},{"old', { edits: [{ oldText: "x" }] }],
    ["{", {}],
    ["", undefined],
    ["nonsense", undefined],
    ["[".repeat(1_000), undefined],
  ])("%s", (part, expected) => {
    const known = partialJson(part);
    if (part.includes('{"old')) expect(known).toMatchObject({ edits: [{ oldText: "x" }, {}] });
    else expect(known).toEqual(expected);
  });

  test("each part of a JSON text has a value or none, and the whole has its own", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 4 })), fc.nat(), (value, cut) => {
        const json = JSON.stringify(value);
        expect(() => partialJson(json.slice(0, cut % (json.length + 1)))).not.toThrow();
        expect(partialJson(json)).toEqual(JSON.parse(json));
      }),
    );
  });
});
