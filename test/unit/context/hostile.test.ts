import { expect, test } from "vitest";
import { messageFault } from "../../../context/document/built-check.ts";
import type { ContextTarget } from "../../../context/document/document.ts";
import { prepareContext } from "../../../context/document/prepare.ts";
import { sessionEntries } from "../../../context/document/session-entries.ts";
import { defaultContextLimits } from "../../../protocol/context-limits.ts";
import { WireError } from "../../../protocol/errors.ts";
import { CARRIER_TYPE, DELIVERY_MARK } from "../../../protocol/link.ts";
import { type Dice, dice } from "./items.ts";

const target: ContextTarget = { api: "a", provider: "p", id: "m", takesImages: true };
const own = { api: "a", provider: "p", id: "m" };

const texts = [
  "",
  " ",
  "a",
  "c1",
  "c2",
  "c1",
  "c|1",
  "\ud800",
  "__proto__",
  "x".repeat(500),
  "\n",
  "pi.bash",
  "constructor",
];
const roles = ["system", "user", "assistant", "toolResult", "event", "tool"];
const eventTypes = [
  "e",
  "",
  "pi.compaction",
  "pi.branchSummary",
  "pi.bash",
  "pi.custom:c1",
  "pi.custom:pi-rpcd.carrier",
];

function pick<T>(roll: Dice, choices: readonly T[]): T {
  return choices[roll(choices.length)] as T;
}

function anyContent(roll: Dice): unknown {
  const part = (): unknown =>
    pick(roll, [
      { type: "text", text: pick(roll, texts) },
      { type: "image", data: "AAAA", mimeType: "image/png" },
      { type: "reasoning", text: pick(roll, texts), signature: pick(roll, texts) },
      pick(roll, texts),
      null,
    ]);
  return pick(roll, [pick(roll, texts), null, undefined, [], [part()], [part(), part(), part()]]);
}

function anyBlocks(roll: Dice): unknown {
  const block = (): unknown =>
    pick<unknown>(roll, [
      { type: "text", text: pick(roll, [...texts, 5]) },
      { type: "thinking", thinking: pick(roll, [...texts, null]), thinkingSignature: pick(roll, texts) },
      { type: "toolCall", id: pick(roll, texts), name: pick(roll, texts), arguments: { a: pick(roll, texts) } },
      { type: pick(roll, texts) },
      {},
    ]);
  return Array.from({ length: roll(4) }, block);
}

function anyNative(roll: Dice): unknown {
  return {
    type: pick(roll, ["compaction", "branch_summary", "bashExecution", "custom_message", "x"]),
    ...{
      tokensBefore: pick(roll, [1, -1, "1"]),
      fromId: pick(roll, [...texts, 1]),
      command: pick(roll, [...texts, {}]),
    },
    ...{ exitCode: pick(roll, [0, null, "0"]), customType: pick(roll, ["c1", "pi-rpcd.carrier", 1]), cancelled: 5 },
    ...{
      details: pick(roll, [undefined, null, { "pi-rpcd": { deliveryId: "mark" } }]),
      display: pick(roll, [0, true]),
    },
    ...{ excludeFromContext: pick(roll, [true, false, 1]), fullOutputPath: pick(roll, ["/a", 1]), fromHook: 1 },
  };
}

function anyItem(roll: Dice, nth: number): unknown {
  const call = (): unknown => ({
    id: pick(roll, texts),
    name: pick(roll, texts),
    arguments: { a: [pick(roll, texts)] },
  });
  return {
    role: pick(roll, roles),
    nodeId: `n${nth}`,
    content: anyContent(roll),
    timestamp: pick(roll, [nth, undefined, 1e300, -5, 0.5, "x"]),
    toolCallId: pick(roll, texts),
    toolName: pick(roll, texts),
    isError: pick(roll, [true, false, undefined]),
    eventType: pick(roll, eventTypes),
    model: pick(roll, [own, undefined, { ...own, id: "other" }]),
    meta: pick<unknown>(roll, [undefined, { native: anyNative(roll) }, { a: 1 }]),
    ...(roll(2) === 0 ? { toolCalls: Array.from({ length: roll(4) }, call) } : {}),
    ...(roll(3) === 0 ? { blocks: anyBlocks(roll) } : {}),
  };
}

test("any document is refused by name, or pi gets valid messages within the budget", () => {
  const outcomes = new Map<string, number>();
  for (let seed = 0; seed < 1_500; seed += 1) {
    const roll = dice(seed);
    const items = Array.from({ length: roll(12) + 1 }, (_, nth) => anyItem(roll, nth));
    const maxTokens = pick(roll, [null, 20 + roll(400)]);
    let outcome = "prepared";
    try {
      const document = { format: "pi-rpcd/context", version: 1, items };
      const toolResults = { maxChars: pick(roll, [null, 200]) };
      const prepared = prepareContext(document, { maxTokens, toolResults }, target, defaultContextLimits);
      expect(prepared.messages.map(messageFault).filter((fault) => fault !== undefined)).toEqual([]);
      if (maxTokens !== null) expect(prepared.tokens.structured).toBeLessThanOrEqual(maxTokens);
      const entries = [...sessionEntries(prepared, { id: "s", timestamp: 1, cwd: "/" })];
      expect(entries).toHaveLength(prepared.messages.length + 2);
      const steering = prepared.messages.filter(
        (message) =>
          message.role === "custom" &&
          (message.customType === CARRIER_TYPE || JSON.stringify(message.details)?.startsWith(`{"${DELIVERY_MARK}`)),
      );
      expect(steering).toEqual([]);
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
      outcome = error.kind;
      expect(["invalid_params", "context_invalid", "context_over_budget"], `seed ${seed}: ${error.message}`).toContain(
        outcome,
      );
    }
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
  }
  expect(outcomes.get("prepared")).toBeGreaterThan(300);
});
