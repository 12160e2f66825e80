import type { Violation } from "../dialect.ts";
import { type JsonObject, stringOf } from "../json.ts";
import { refuse, repeated } from "./rules.ts";

export interface Turn {
  readonly role: string;
  /** The position of its first message. */
  readonly at: string;
  readonly blocks: readonly JsonObject[];
}

/** Every `tool_use` has one answer at the beginning of the next user turn, and every `tool_result` answers one. */
export function anthropicPairing(turns: readonly Turn[]): readonly Violation[] {
  const ids = turns.flatMap(usedIds);
  return [
    ...(repeated(ids).length > 0 ? [refuse("messages: `tool_use` ids must be unique")] : []),
    ...turns.flatMap((turn, index) =>
      turn.role === "assistant"
        ? unanswered(turn, turns[index + 1])
        : [...orphans(turn, turns[index - 1]), ...doubled(turn)],
    ),
  ];
}

function unanswered(turn: Turn, next: Turn | undefined): readonly Violation[] {
  const answered = next === undefined ? [] : headResults(next);
  const missing = usedIds(turn).filter((id) => !answered.includes(id));
  if (missing.length === 0) return [];
  return [
    refuse(
      `${turn.at}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${missing.join(", ")}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`,
    ),
  ];
}

function orphans(turn: Turn, previous: Turn | undefined): readonly Violation[] {
  const used = previous?.role === "assistant" ? usedIds(previous) : [];
  return resultIds(turn.blocks)
    .filter((id) => !used.includes(id))
    .map((id) =>
      refuse(
        `${turn.at}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${id}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`,
      ),
    );
}

function doubled(turn: Turn): readonly Violation[] {
  return repeated(resultIds(turn.blocks)).map((id) =>
    refuse(`${turn.at}: each tool_use must have a single result. Found multiple \`tool_result\` blocks with id: ${id}`),
  );
}

function usedIds(turn: Turn): readonly string[] {
  return turn.blocks.filter((block) => block["type"] === "tool_use").map((block) => stringOf(block["id"]));
}

/** Results only count at the beginning of the turn: text before them hides them from the API. */
function headResults(turn: Turn): readonly string[] {
  const other = turn.blocks.findIndex((block) => block["type"] !== "tool_result");
  return resultIds(other === -1 ? turn.blocks : turn.blocks.slice(0, other));
}

function resultIds(blocks: readonly JsonObject[]): readonly string[] {
  return blocks.filter((block) => block["type"] === "tool_result").map((block) => stringOf(block["tool_use_id"]));
}
