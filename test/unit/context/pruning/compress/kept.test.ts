import { expect, test } from "vitest";
import { keptOf } from "../../../../../context/pruning/compress/kept.ts";
import { resolve } from "../../../../../context/pruning/compress/resolve.ts";
import { call, problems, rules, stage } from "./stage.ts";

const shapes = ["u", "t2", "a", "u", "a", "u", "c"] as const;
const view = stage({ shapes });
const nobody = { users: false, isProtected: () => false };

test("a user's words stay unchanged if configured", () => {
  expect(keptOf(view.places, nobody)).toEqual([]);
  expect(keptOf(view.places.slice(0, 6), { ...nobody, users: true })).toEqual([
    { title: "The user (m001):", text: "Question 1." },
    { title: "The user (m004):", text: "Question 4." },
  ]);
});

test("outputs of protected tools and files stay unchanged", () => {
  const isProtected = (tool: string, args: unknown): boolean =>
    tool === "read" && JSON.stringify(args) === '{"path":"call-1.ts"}';
  expect(keptOf(view.places, { ...nobody, isProtected })).toEqual([
    { title: "Output of read call-1.ts (m002):", text: "Output of call-1" },
  ]);
});

test("2,000 characters of a user's words stay, and 4,000 of an output, with the number of omitted ones", () => {
  const [user, calls, output] = view.places;
  if (user === undefined || calls === undefined || output === undefined) throw new Error("The stage is another.");
  const long = "🙂".repeat(3_000);
  const places = [
    { ...user, messages: [{ role: "user" as const, content: long, timestamp: 0 }] },
    calls,
    {
      ...output,
      messages: output.messages.map((message) => ({ ...message, content: [{ type: "text", text: long }] })),
    },
  ] as unknown as Parameters<typeof keptOf>[0];
  const kept = keptOf(places, { users: true, isProtected: () => true });
  expect(kept.map(({ text }) => text)).toEqual([
    `${"🙂".repeat(1_000)}\n[… 4000 more characters]`,
    `${"🙂".repeat(2_000)}\n[… 2000 more characters]`,
  ]);
});

test("kept text counts as part of the block, and more than a block may keep is refused", () => {
  const keep = (units: number) => ({
    ...rules,
    mostKept: 1_000,
    keptOf: () => [{ title: "Kept:", text: "x".repeat(units) }],
    tokensOf: (_topic: string, _body: unknown, kept: readonly { readonly text: string }[]) =>
      kept.reduce((sum, { text }) => sum + text.length / 10, 0),
  });
  expect(resolve(call(["m001", "m003"]), view, keep(1_000))).toMatchObject({ ranges: [{ tokensAfter: 100 }] });
  expect(problems(view, call(["m001", "m003"]), keep(1_001))).toEqual([
    "m001–m003 has 1001 characters that are protected; a block keeps 1000 at most. Take a smaller range.",
  ]);
  const many = { ...keep(0), keptOf: () => Array.from({ length: 10_001 }, () => ({ title: "Kept:", text: "" })) };
  expect(problems(view, call(["m001", "m003"]), many)).toEqual([
    "m001–m003 has 10001 texts that are protected; a block keeps 10000 at most. Take a smaller range.",
  ]);
});
