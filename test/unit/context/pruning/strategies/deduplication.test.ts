import { expect, test } from "vitest";
import { planned } from "../../../../../context/pruning/strategies/plan.ts";
import { resolvePruning } from "../../../../../protocol/pruning/resolve.ts";
import { unchecked } from "../../../../helpers/partial.ts";
import { contextOf, edit, entriesOf, long, plan, read, run, type Step, write } from "./scene.ts";

const text = long("a.ts");

test("only the last output stays of a file that is read again unchanged", () => {
  const steps = [read("src/a.ts", text), read("src/a.ts", text), read("src/b.ts", text), read("src/a.ts", text)];
  const made = plan(steps);
  expect(made.map(({ entry, strategy }) => `${entry} ${strategy}`)).toEqual(["t1 deduplication", "t2 deduplication"]);
  const size = (text.length / 1_024).toFixed(1);
  expect(made[0]?.content).toContain(`[read src/a.ts: ${size} KB, 100 lines, ok; pruned, repeated below; recall r007]`);
});

test("reads of a file stay if a write, an edit or a shell call touched it in between", () => {
  const again = [read("src/a.ts", text), read("src/a.ts", text)] as const;
  const between = [
    write("src/a.ts", "x"),
    write("/project/src/a.ts", "x"),
    edit("./src/a.ts"),
    edit("@src/a.ts"),
    run("sed -i s/a/b/ src/a.ts"),
    run("cd src && prettier -w a.ts"),
    run(`echo ${"x".repeat(70_000)}`),
    { tool: "rename_symbol", args: { file: "src/a.ts" }, output: "ok" },
  ];
  for (const step of between) expect(entriesOf([again[0], step, again[1]]), step.tool).toEqual([]);
  const harmless = [
    write("src/b.ts", "x"),
    write("src/a.ts", "x", { isError: true }),
    edit("src/a.ts", { isError: true }),
    run("npm test"),
    { tool: "grep", args: { pattern: "x", path: "src/a.ts" }, output: "" },
  ];
  for (const step of harmless) expect(entriesOf([again[0], step, again[1]]), step.tool).toEqual(["t1"]);
});

test("other content of a file is another version, whoever changed it", () => {
  expect(entriesOf([read("a.ts", text), run("npm run format"), read("a.ts", long("b"))])).toEqual([]);
});

test("a repeated command leaves its last output, unless a file that it names was written in between", () => {
  const made = plan([run("npm test", long("one")), write("src/a.ts", "x"), run("npm test", long("two"))]);
  expect(made.map(({ entry }) => entry)).toEqual(["t1"]);
  expect(made[0]?.content).toContain("pruned, newer output below");
  expect(entriesOf([run("cat src/a.ts", text), write("src/a.ts", "x"), run("cat src/a.ts", text)])).toEqual([]);
});

test("an output is not replaced by a later failure, but a failure is replaced by a later output", () => {
  const fetch = (output: string, isError: boolean) => ({ tool: "fetch", args: { url: "u" }, output, isError });
  expect(entriesOf([fetch(text, false), fetch("503", true)])).toEqual([]);
  expect(entriesOf([fetch(text, true), fetch(text, false)])).toEqual(["t1"]);
});

test("arguments are compared without key order and null values", () => {
  const first = { tool: "grep", args: { pattern: "x", path: "src", limit: null, more: { a: 1, b: 2 } }, output: text };
  const second = { tool: "grep", args: { more: { b: 2, a: 1 }, path: "src", pattern: "x" }, output: text };
  expect(entriesOf([first, second])).toEqual(["t1"]);
  expect(entriesOf([first, { ...second, args: { ...second.args, pattern: "y" } }])).toEqual([]);
  expect(entriesOf([first, { ...second, tool: "find" }])).toEqual([]);
});

test("a search is affected by writes below its path", () => {
  const search = { tool: "grep", args: { pattern: "x" }, output: text };
  expect(entriesOf([search, write("src/deep/a.ts", "x"), search])).toEqual([]);
  expect(entriesOf([search, write("/elsewhere/a.ts", "x"), search])).toEqual(["t1"]);
});

test("outputs of write, edit, compress and recall stay, and of tools and files that globs protect", () => {
  for (const tool of ["write", "edit", "compress", "recall"]) {
    const step = { tool, args: { id: "r001" }, output: text };
    expect(entriesOf([step, step]), tool).toEqual([]);
  }
  const ask = { tool: "mcp_ask", args: { question: "?" }, output: text };
  const strategies = { deduplication: { protectedTools: ["mcp_*"] } };
  expect(entriesOf([ask, ask], { pruning: { strategies } })).toEqual([]);
  const reads = [read("docs/plan.md", text), read("docs/plan.md", text)];
  for (const glob of ["*.md", "docs/**", "/project/docs/*", "**/plan.{md,txt}"]) {
    expect(entriesOf(reads, { pruning: { protectedFilePatterns: [glob] } }), glob).toEqual([]);
  }
  expect(entriesOf(reads, { pruning: { protectedFilePatterns: ["docs/*.ts", "src/**"] } })).toEqual(["t1"]);
});

test("only a later output that the model sees counts as a repetition", () => {
  const steps = [read("a.ts", text), read("a.ts", text), read("a.ts", text)];
  expect(entriesOf(steps, { isOut: (id) => id === "t3" })).toEqual(["t1"]);
  expect(entriesOf(steps, { isOut: (id) => id !== "t1" })).toEqual([]);
  const context = contextOf(steps);
  const edits = ["t2", "t3"].map((targetId) => ({ sourceEntry: { type: "context_edit", targetId }, messages: [] }));
  const removals = planned({
    context: [...context, ...unchecked<never[]>(edits)],
    config: resolvePruning({ enabled: true }),
    cwd: "/project",
    tokensOf: () => 1,
    isOut: () => false,
  });
  expect(removals).toEqual([]);
});

test("huge, deep or invalid arguments are not compared, and take no time", () => {
  let deep: unknown = "x";
  for (let at = 0; at < 10_000; at += 1) deep = [deep];
  for (const args of [{ text: "x".repeat(5_000_000) }, { deep }, { many: Array.from({ length: 100_000 }, () => 1) }]) {
    const step = { tool: "ask", args, output: text };
    expect(entriesOf([step, { ...step, args: { ...args } }])).toEqual([]);
  }
  const none: Step = { tool: "ask", args: unchecked(undefined), output: text };
  expect(entriesOf([none, none])).toEqual([]);
});

test("nothing is searched while it is off", () => {
  const strategies = { deduplication: { enabled: false } };
  expect(entriesOf([read("a.ts", text), read("a.ts", text)], { pruning: { strategies } })).toEqual([]);
});

test("a file shown by a shell is another version after a shell command or a patch changed it", () => {
  const shown = (output: string) => run("cat src/a.ts", long(output));
  expect(entriesOf([shown("one"), run("cat src/b.ts"), shown("two")])).toEqual(["t1"]);
  for (const between of [
    run("sed -i s/a/b/ src/a.ts"),
    run("cd src && prettier -w a.ts"),
    run(Array.from({ length: 100 }, (_, at) => `src/${at}.ts`).join(" ")),
    { tool: "apply_patch", args: { input: "*** Update File: src/a.ts" }, output: "ok" },
  ]) {
    expect(entriesOf([shown("one"), between, shown("two")]), JSON.stringify(between.args)).toEqual([]);
  }
  const page = (output: string) => ({ tool: "next_page", args: {}, output: long(output) });
  expect(entriesOf([page("one"), page("two")])).toEqual([]);
  expect(entriesOf([page("one"), page("one")])).toEqual(["t1"]);
});
