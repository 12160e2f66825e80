import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { type AgentMessage, messageOf } from "../../../extension/pi-types.ts";
import { unlessAborted } from "../../../extension/unless-aborted.ts";
import { isRecord } from "../../../protocol/objects.ts";
import { transcriptOf } from "./transcript.ts";

type Model = NonNullable<ExtensionContext["model"]>;
export type SummaryUsage = Extract<AgentMessage, { role: "assistant" }>["usage"];

/** `usage`: the cost, also of a failed summary. */
export type Summary =
  | { readonly text: string; readonly usage: SummaryUsage }
  | { readonly failed: string; readonly usage: SummaryUsage | undefined };

export interface SummaryRequest {
  readonly model: Model;
  readonly messages: readonly AgentMessage[];
  /** Tokens that the summary may have. */
  readonly maxTokens: number;
  /** The prompt. `undefined`: {@link instructions}. */
  readonly prompt: string | undefined;
  /** Additional instructions of the user. */
  readonly focus?: string;
  readonly tokensOf: (text: string) => number;
  /** Aborts the request, in addition to the run's signal. */
  readonly signal?: AbortSignal;
}

/** The failure if the conversation is too long. */
export const doesNotFit = "The conversation does not fit into a request.";

/** How long a run waits for its summary. */
const withinMs = 180_000;
/** How long it waits after an abort or timeout for the provider to end by itself. */
const graceMs = 2_000;

/** Characters of each tool result: the first with which the request fits into the window. */
const resultChars = [2_000, 500, 100] as const;

const instructions = `Write what a colleague needs who takes over this work and sees nothing of the conversation above but your text and its newest messages. Use these headings, and leave out one that has nothing to say:

## Goal
What the user wants, with each condition that they have set.
## State
What is done, what is under way, what has failed and why.
## Decisions
What was decided, and for which reason.
## Facts
Paths, names, commands, values and the wording of errors that are still needed, exactly as they stand there.
## Next
What comes next, in order.

If the conversation begins with a summary of what came before, keep what of it still holds. Do not answer the conversation and call no tools.`;

/**
 * Summarizes messages with the session's model, in a separate request that bypasses pi's hooks and does not write to the
 * provider's cache. Never rejects.
 */
export async function summarise(request: SummaryRequest, ctx: ExtensionContext): Promise<Summary> {
  const { model, maxTokens } = request;
  const text = requestText(request);
  if (text === undefined) return { failed: doesNotFit, usage: undefined };
  const ends = [ctx.signal, request.signal].filter((one) => one !== undefined);
  const signal = AbortSignal.any([...ends, AbortSignal.timeout(withinMs)]);
  try {
    const stream = ctx.modelRegistry.streamSimple(
      model,
      { messages: [{ role: "user", content: [{ type: "text", text }], timestamp: Date.now() }] },
      { cacheRetention: "none", maxTokens, signal },
    );
    // A provider that respects the signal ends with the cost of the request; a provider of an extension may ignore it.
    return outcomeOf(await unlessAborted(stream.result(), signal, graceMs));
  } catch (thrown) {
    return { failed: messageOf(thrown), usage: undefined };
  }
}

function requestText({ model, messages, maxTokens, prompt, focus, tokensOf }: SummaryRequest): string | undefined {
  const words = Math.floor(maxTokens / 2);
  const wanted = focus === undefined || focus.trim() === "" ? "" : `\n\nThe user wants of it: ${focus.trim()}`;
  for (const chars of resultChars) {
    const text = `<conversation>\n${transcriptOf(messages, chars)}\n</conversation>\n\n${prompt ?? instructions}${wanted}\n\nUse at most ${words} words.`;
    if (tokensOf(text) + maxTokens <= model.contextWindow) return text;
  }
  return undefined;
}

function outcomeOf(message: Extract<AgentMessage, { role: "assistant" }>): Summary {
  const usage = isRecord(message.usage) ? message.usage : undefined;
  if (message.stopReason !== "stop") {
    return { failed: message.errorMessage ?? `The summary ended with "${message.stopReason}".`, usage };
  }
  const text = message.content
    .flatMap((block) => (block.type === "text" ? [block.text] : []))
    .join("\n")
    .trim();
  return text === "" || usage === undefined ? { failed: "The summary is empty.", usage } : { text, usage };
}
