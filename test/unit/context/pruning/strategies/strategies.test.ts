import { expect, test } from "vitest";
import { edit, entriesOf, long, plan, read, write } from "./scene.ts";

const on = { enabled: true };
const failedEdit = {
  tool: "edit",
  args: { path: "src/a.ts", edits: [{ oldText: "o".repeat(300), newText: "short" }] },
  output: "Not found.",
  isError: true,
};

test("some turns after a failed call its long arguments are replaced by marks, and the error stays", () => {
  const [made, ...rest] = plan([failedEdit], { turnsBehind: 4 });
  expect(rest).toEqual([]);
  expect(made).toMatchObject({ entry: "a1", strategy: "purgeErrors" });
  expect(made?.content).toContain(
    '"oldText":"[oldText: 300 B pruned, the call failed; recall r007]","newText":"short"',
  );
  expect(made?.content).toContain('"path":"src/a.ts"');
  expect(plan([failedEdit], { turnsBehind: 3 })).toEqual([]);
  expect(plan([{ ...failedEdit, isError: false }], { turnsBehind: 9 })).toEqual([]);
});

test("with both, a long error keeps its beginning and its end", () => {
  const output = `begins ${"x".repeat(5_000)} ends`;
  const strategies = { purgeErrors: { mode: "both" as const } };
  const [call, error] = plan([{ ...failedEdit, output }], { turnsBehind: 4, pruning: { strategies } });
  expect(call?.entry).toBe("a1");
  expect(error).toMatchObject({ entry: "t1", strategy: "purgeErrors" });
  expect(error?.content).toMatch(/begins x+\\n\[… cut: 5012 characters, 1 line in all; recall r007 …\]\\nx+ ends/u);
  expect(entriesOf([failedEdit], { turnsBehind: 4, pruning: { strategies } })).toEqual(["a1"]);
});

test("a call with a thought signature is left alone, and the others of its message are not", () => {
  expect(entriesOf([{ ...failedEdit, signature: "s" }], { turnsBehind: 4 })).toEqual([]);
  const steps = [
    { ...failedEdit, signature: "s" },
    { ...failedEdit, isBeside: true },
  ];
  const [made] = plan(steps, { turnsBehind: 4 });
  const [signed, other] = JSON.parse(made?.content ?? "[]");
  expect(signed).toMatchObject({ thoughtSignature: "s", arguments: failedEdit.args });
  expect(other.arguments.edits[0].oldText).toContain("pruned");
});

test("a protected tool's failed calls stay, and those on a protected file", () => {
  const strategies = { purgeErrors: { protectedTools: ["ed?t"] } };
  expect(entriesOf([failedEdit], { turnsBehind: 4, pruning: { strategies } })).toEqual([]);
  expect(entriesOf([failedEdit], { turnsBehind: 4, pruning: { protectedFilePatterns: ["a.ts"] } })).toEqual([]);
});

test("the arguments of a write are removed after the file was completely and successfully rewritten", () => {
  const strategies = { supersedeWrites: on };
  const first = write("src/a.ts", long("one"));
  const superseded = (...later: Parameters<typeof plan>[0]) => plan([first, ...later], { pruning: { strategies } });
  const [made] = superseded(write("/project/src/a.ts", long("two")));
  expect(made).toMatchObject({ entry: "a1", strategy: "supersedeWrites" });
  expect(made?.content).toContain("pruned, its file was written again; recall r007]");
  expect(superseded(write("src/a.ts", long("two"), { isError: true }))).toEqual([]);
  expect(superseded(edit("src/a.ts"))).toEqual([]);
  expect(superseded(write("src/b.ts", long("two")))).toEqual([]);
  expect(plan([first, write("src/a.ts", "x")])).toEqual([]);
});

test("reads of a file are removed after the file was written or edited", () => {
  const strategies = { staleReads: on };
  const reads = [
    read("src/a.ts", long("one")),
    { ...read("src/a.ts", long("two")), args: { path: "src/a.ts", offset: 9 } },
  ];
  const options = { pruning: { strategies } };
  expect(plan([...reads, edit("src/a.ts")], options)).toMatchObject([
    { entry: "t1", strategy: "staleReads", content: expect.stringContaining("pruned, the file was changed later") },
    { entry: "t2", strategy: "staleReads" },
  ]);
  expect(entriesOf([edit("src/a.ts"), ...reads], options)).toEqual([]);
  expect(entriesOf([...reads, edit("src/a.ts", { isError: true })], options)).toEqual([]);
  expect(entriesOf([...reads, edit("src/a.ts")])).toEqual([]);
});

test("old large outputs keep their beginnings and ends", () => {
  const strategies = { sizeDecay: { ...on, turns: 3, minTokens: 500, head: 100, tail: 50 } };
  const steps = [read("big.txt", `first\n${long("b")}last`), read("small.txt", "little")];
  const [made, ...rest] = plan(steps, { turnsBehind: 3, pruning: { strategies } });
  expect(rest).toEqual([]);
  expect(made).toMatchObject({ entry: "t1", strategy: "sizeDecay" });
  expect(made?.content).toContain("first");
  expect(made?.content).toContain("recall r007");
  expect(made?.content).toContain("last");
  expect(made?.content.length).toBeLessThan(400);
  expect(entriesOf(steps, { turnsBehind: 1, pruning: { strategies } })).toEqual([]);
  expect(entriesOf(steps, { turnsBehind: 9 })).toEqual([]);
});

test("an entry that two strategies would remove is removed once, by the earlier one", () => {
  const strategies = { staleReads: on, sizeDecay: { ...on, turns: 1, minTokens: 1 }, supersedeWrites: on };
  const steps = [
    read("a.ts", long("a")),
    read("a.ts", long("a")),
    edit("a.ts"),
    write("w.ts", "w".repeat(300)),
    { ...failedEdit, isBeside: true },
    write("w.ts", "v"),
  ];
  const made = plan(steps, { turnsBehind: 4, pruning: { strategies } });
  expect(made.map(({ entry, strategy }) => `${entry} ${strategy}`)).toEqual([
    "t1 deduplication",
    "t2 staleReads",
    "a4 supersedeWrites",
  ]);
  expect(made[2]?.content).toContain("its file was written again");
  expect(made[2]?.content).toContain("the call failed");
});
