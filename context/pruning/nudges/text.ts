import { count, percent } from "../../../protocol/number-text.ts";
import { filledPrompt, type PromptName } from "../../../protocol/pruning/prompts.ts";
import type { Prompts } from "../prompts/prompts.ts";
import type { Block, Usage } from "../pruning-services.ts";
import type { NudgeKind } from "./record.ts";

/** The tag around a reminder. */
const REMINDER_TAG = "dcp-system-reminder";

/** A range that could be compressed. */
export interface NudgeCandidate {
  readonly startId: string;
  readonly endId: string;
  readonly tokens: number;
}

export interface NudgeFacts {
  readonly usage: Usage;
  /** Active blocks, oldest first. */
  readonly blocks: readonly Pick<Block, "id" | "topic" | "tokensAfter">[];
  readonly candidates: readonly NudgeCandidate[];
}

const promptOf: Readonly<Record<NudgeKind, PromptName>> = {
  turn: "turn",
  iteration: "iteration",
  "limit-soft": "limitSoft",
  "limit-strong": "limitStrong",
};

/** Listed blocks (the newest) and ranges. */
const mostBlocks = 16;
const mostCandidates = 5;
const mostTopic = 80;

/** The text of a reminder. */
export function nudgeText(kind: NudgeKind, { usage, blocks, candidates }: NudgeFacts, prompts: Prompts): string {
  const { share, tokens, window, max } = usage;
  const text = filledPrompt(prompts.text(promptOf[kind]), {
    usage: `${percent(share)} (${count(tokens)} of ${count(window)} tokens)`,
    max: percent(max),
    blocks: blocksText(blocks),
    candidates: candidates.slice(0, mostCandidates).map(candidateText).join("; ") || "none known",
  });
  return `<${REMINDER_TAG}>\n${text}\n</${REMINDER_TAG}>`;
}

function blocksText(blocks: NudgeFacts["blocks"]): string {
  const named = blocks.slice(-mostBlocks).map(({ id, topic }) => `${id} (${oneLine(topic)})`);
  const left = blocks.length - named.length;
  return [...(left > 0 ? [`${left} older`] : []), ...named].join(", ") || "none";
}

function candidateText({ startId, endId, tokens }: NudgeCandidate): string {
  return `${startId}–${endId} (about ${count(tokens)} tokens)`;
}

/** The model wrote the topic, which must not close the reminder's tag. */
function oneLine(topic: string): string {
  return topic
    .slice(0, mostTopic)
    .replaceAll(/[\s<>]+/gu, " ")
    .trim()
    .toWellFormed();
}
