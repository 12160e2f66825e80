import { expect, test } from "vitest";
import type { ContextItem } from "../../../context/document/document.ts";
import { estimateMessage } from "../../../context/document/estimate.ts";
import { exportContext } from "../../../context/document/export.ts";
import { heldEntries, heldRoot, leftAt } from "../../../context/document/held-entries.ts";
import { prepareContext } from "../../../context/document/prepare.ts";
import { defaultContextLimits } from "../../../protocol/context-limits.ts";
import type { BuiltMessage } from "../../../protocol/link-context.ts";
import { PiSession, sessionTarget } from "../../helpers/pi-session.ts";

const turns = Array.from({ length: 16 }, (_, i): Record<string, unknown>[] => [
  {
    role: "user",
    content: `Question ${i}. ${"word ".repeat(100)}`,
    timestamp: 3 * i,
    nodeId: `u${i}`,
    meta: { nth: i },
  },
  { role: "assistant", content: "", toolCalls: [{ id: `c${i}`, name: "bash", arguments: {} }], timestamp: 3 * i + 1 },
  { role: "toolResult", toolCallId: `c${i}`, content: `Result ${i}.`, timestamp: 3 * i + 2, nodeId: `r${i}` },
]).flat();
const document = {
  format: "pi-rpcd/context",
  version: 1,
  items: [{ role: "system", content: "Be brief.", timestamp: 0, nodeId: "s" }, ...turns],
};
const prepared = prepareContext(document, { budget: null }, sessionTarget, defaultContextLimits);
const { messages, hash } = prepared;
const size = messages.reduce((tokens, message) => tokens + estimateMessage(message), 0);

/** pi's own entries, with this many compactions. */
function said(compactions: number): PiSession {
  const session = new PiSession();
  session.user("One.");
  for (let nth = 1; nth <= compactions; nth += 1) {
    session.compaction(`Summary ${nth}`, undefined);
    session.user(`After ${nth}.`);
  }
  return session;
}

/** The export of a session whose pi has the messages before its own entries. */
function exported(own: PiSession, left: readonly BuiltMessage[]): readonly ContextItem[] {
  const held = [...heldEntries(messages, hash, heldRoot(prepared), left)];
  const heldThrough = String(held.at(-1)?.["id"]);
  const linked = own.entries.map((entry) => {
    const one = entry as Record<string, unknown>;
    return one["parentId"] === null ? { ...one, parentId: heldThrough } : one;
  });
  const entries = JSON.parse(JSON.stringify([...held, ...linked])) as unknown[];
  return exportContext(entries, { heldThrough, includeInstructions: true }).document.items ?? [];
}

const texts = (items: readonly ContextItem[]): string[] =>
  items.map(({ content }) => content.map((part) => ("text" in part ? part.text.slice(0, 12) : "")).join(""));

test.for(["keep", "trim", "drop"] as const)(
  "an export has the rest of a held past before a compaction, if the policy is %s",
  (afterCompaction) => {
    for (const compactions of [0, 1, 2]) {
      const own = said(compactions);
      const left = leftAt({ hash, messages, budget: size, afterCompaction }, own.entries, undefined);
      const items = exported(own, left);
      const tail = compactions === 0 ? ["One."] : [`Summary ${compactions}`, `After ${compactions}.`];
      expect(texts(items).slice(-tail.length)).toEqual(tail);
      expect(texts(items)[0]).toBe("Be brief.");
      const past = items.slice(1, -tail.length);
      expect(past).toHaveLength(left.length);
      if (compactions === 0 || afterCompaction === "keep") expect(left).toBe(messages);
      else if (afterCompaction === "drop") expect(past).toEqual([]);
      else {
        const [notice, ...kept] = past;
        expect(left.reduce((sum, message) => sum + estimateMessage(message), 0)).toBeLessThanOrEqual(
          size / 2 ** compactions,
        );
        expect(kept.length).toBeGreaterThan(2);
        expect(notice).toMatchObject({
          role: "event",
          eventType: "context.trimmed",
          meta: { messages: messages.length - kept.length },
        });
        // Each is the same as in the document.
        expect(kept).toMatchObject(
          turns.slice(-kept.length).map(({ content: _, ...rest }: Record<string, unknown>) => rest),
        );
      }
    }
  },
);

test("the remaining part of a held past follows from the exported branch, not from others", () => {
  const own = said(2);
  const context = { hash, messages, budget: size, afterCompaction: "trim" } as const;
  const at = (leafId: string) => leftAt(context, own.entries, leafId);
  const ids = own.entries.map((entry) => String((entry as { id: unknown }).id));
  const compactions = own.entries.map((entry) => (entry as { type: unknown }).type === "compaction");
  const [first = 0, second = 0] = compactions.flatMap((is, index) => (is ? [index] : []));
  expect(at(ids[first - 1] ?? "")).toBe(messages);
  expect(at(ids[first] ?? "").length).toBeGreaterThan(at(ids[second] ?? "").length);
  // An entry of the past itself.
  expect(at("no entry of pi's")).toBe(messages);
});

test("of a held past whose newest turn does not fit, the results come back shortened, under their own ids", () => {
  const long = {
    ...document,
    items: [
      { role: "user", content: "Look.", timestamp: 1, nodeId: "u" },
      {
        role: "assistant",
        content: "",
        toolCalls: [{ id: "c", name: "bash", arguments: {} }],
        timestamp: 2,
        nodeId: "a",
      },
      { role: "toolResult", toolCallId: "c", content: "word ".repeat(5_000), timestamp: 3, nodeId: "r" },
    ],
  };
  const one = prepareContext(long, { budget: null }, sessionTarget, defaultContextLimits);
  const held = { hash: one.hash, messages: one.messages, budget: 2_000, afterCompaction: "trim" } as const;
  const left = leftAt(held, said(1).entries, undefined);
  const entries = [...heldEntries(one.messages, one.hash, heldRoot(one), left)];
  const { items = [] } = exportContext(JSON.parse(JSON.stringify(entries))).document;
  expect(items.map(({ nodeId }) => nodeId)).toEqual(["u", "a", "r"]);
  expect(JSON.stringify(items[2]?.content).length).toBeLessThan(10_000);
});
