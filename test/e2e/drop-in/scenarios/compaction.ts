import type { Scenario } from "../scenario.ts";

/** Everything except the last messages is summarised. */
const keepsLittle = { compaction: { enabled: true, reserveTokens: 1_000, keepRecentTokens: 1 } };

/** Summaries that the front end asks for. */
export const compaction: readonly Scenario[] = [
  {
    name: "compact while idle, then another prompt",
    settings: keepsLittle,
    script: () => ["one", "two", "A summary.", "three"],
    play: async (front) => {
      await front.prompt("first");
      await front.prompt("second");
      await front.call({ type: "compact", customInstructions: "Keep the names." });
      await front.call({ type: "get_state" });
      await front.call({ type: "get_entries" });
      await front.prompt("third");
      await front.call({ type: "get_session_stats" });
    },
  },
  {
    name: "compact without anything to compact",
    play: async (front) => {
      await front.call({ type: "compact" });
      await front.prompt("hello");
      await front.call({ type: "compact" });
    },
  },
  {
    name: "prompt and abort during a compaction",
    known: { "0.87.1": /differs at \.id: "compact" and "abort"/, "1.5.2": /differs at \.id: "compact" and "abort"/ },
    settings: keepsLittle,
    script: (gates) => [
      "one",
      "two",
      { kind: "hang", before: [{ kind: "hold", gate: gates.named("summary") }] },
      "three",
    ],
    play: async (front) => {
      await front.prompt("first");
      await front.prompt("second");
      front.send({ id: "compact", type: "compact" });
      await front.gate("summary").reached;
      await front.call({ type: "get_state" });
      await front.call({ type: "prompt", message: "too early" });
      front.send({ id: "abort", type: "abort" });
      await Promise.all([front.response("compact"), front.response("abort")]);
      await front.prompt("third");
    },
  },
  {
    name: "compaction because the context is full",
    settings: keepsLittle,
    script: () => ["one", "two", { kind: "overflow", tokens: 213_462, limitTokens: 200_000 }, "A summary.", "three"],
    play: async (front) => {
      await front.prompt("first");
      await front.prompt("second");
      await front.prompt("third");
    },
  },
];
