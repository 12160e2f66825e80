import { expect, test } from "vitest";
import { treeLines } from "../../../cli/tree.ts";
import { memoryOutput } from "./memory-output.ts";

/** An entry of pi with the fields of its type. */
type Entry = Parameters<typeof treeLines>[0]["entries"][number] & Readonly<Record<string, unknown>>;

function message(id: string, parentId: string | null, role: string, content: unknown = id): Entry {
  return { type: "message", id, parentId, message: { role, content } };
}

function drawn(entries: readonly Entry[], leafId: string | null, all = false): readonly string[] {
  return treeLines({ entries: [...entries], leafId }, { all, painter: memoryOutput().output });
}

const entries: readonly Entry[] = [
  message("s", null, "system"),
  message("u1", "s", "user", "Why is it slow?"),
  message("a1", "u1", "assistant", [
    { type: "text", text: "I look." },
    { type: "toolCall", id: "c1", name: "bash", arguments: { command: "make" } },
  ]),
  message("t1", "a1", "toolResult", "ok"),
  message("a2", "t1", "assistant", "The cache is off."),
  message("u2", "a2", "user", "Turn it on."),
  { type: "label", id: "l1", parentId: "u2", targetId: "a2", label: "cause" },
  message("a3", "l1", "assistant", "Done."),
  { type: "branch_summary", id: "b1", parentId: "a2", summary: "It was turned on." },
  message("u3", "b1", "user", "Measure\nfirst.\u001b[2J"),
  { type: "model_change", id: "m1", parentId: "u3", provider: "p", modelId: "m" },
] as const;

test("a conversation is indented where it divides, with labels and the current end", () => {
  expect(drawn(entries, "m1")).toEqual([
    "u1  user: Why is it slow?",
    "a1  assistant: I look. [bash] make",
    "a2  [cause] assistant: The cache is off.",
    "├─ u2  user: Turn it on.",
    "│  a3  assistant: Done.",
    "└─ b1  summary of a branch: It was turned on.",
    "   u3  user: Measure | first.[2J ◀ the current end",
  ]);
});

test("with all entries, those of pi and tool results are drawn, too", () => {
  const lines = drawn(entries, "m1", true);
  expect(lines).toHaveLength(entries.length);
  expect(lines.at(-1)).toBe("   m1  model: p/m ◀ the current end");
});

test("a removed label, unknown parents and repeated ids of another program do no harm", () => {
  const odd: readonly Entry[] = [
    message("x", "later", "user", "one"),
    message("x", null, "user", "again"),
    message("later", "x", "assistant", 7),
    { type: "label", id: "l1", parentId: "x", targetId: "x", label: "gone" },
    { type: "label", id: "l2", parentId: "l1", targetId: "x" },
    { type: "message", id: "y", parentId: null, message: 7 },
    {
      type: "message",
      id: "y2",
      parentId: "y",
      message: { role: "assistant", content: [null, 7] },
    },
  ];
  expect(drawn(odd, "nowhere", true)).toEqual([
    "├─ x  user: one",
    "│  ├─ later  assistant:",
    "│  └─ l1  label of x: gone",
    "│     l2  label of x: none",
    "└─ y  message",
    "   y2  assistant:",
  ]);
});

test("a conversation of 20,000 messages in a row, or with as many nested branches, is drawn", () => {
  const row = Array.from({ length: 20_000 }, (_, n) => message(`e${n}`, n === 0 ? null : `e${n - 1}`, "user"));
  expect(drawn(row, "e19999").at(-1)).toBe("e19999  user: e19999 ◀ the current end");
  const branches = row.flatMap((entry, n) => [entry, message(`x${n}`, `e${n}`, "user")]);
  const lines = drawn(branches, null);
  expect(lines).toHaveLength(40_000);
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThan(100);
});

test("lines fit the terminal", () => {
  const { output } = memoryOutput({ isTerminal: true, columns: 20, env: { NO_COLOR: "1" } });
  const lines = treeLines({ entries: [...entries], leafId: "u3" }, { all: false, painter: output });
  expect(lines.slice(0, 2)).toEqual(["u1  user: Why is it…", "a1  assistant: I lo…"]);
});
