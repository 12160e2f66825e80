import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { type AgentMessage, messageOf } from "../../../extension/pi-types.ts";
import { unlessAborted } from "../../../extension/unless-aborted.ts";
import { isRecord } from "../../../protocol/objects.ts";
import { addUsage } from "../../cost/usage.ts";
import { type Continuation, continuationOf } from "./continuation.ts";
import type { CachedRequest } from "./last-request.ts";
import { isContinuationCheaper } from "./summary-price.ts";
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
  /** The last request, if it has all these messages. */
  readonly last?: LastOne | undefined;
}

export interface LastOne extends CachedRequest {
  readonly isThinking: boolean;
  /** Whether a message of the payload is text that only this request had. */
  readonly isPassing: (message: unknown) => boolean;
}

/** The failure if the conversation is too long. */
export const doesNotFit = "The conversation does not fit into a request.";

/** How long a run waits for its summary. */
const withinMs = 180_000;
/** How long it waits after an abort or timeout for the provider to end by itself. */
const graceMs = 2_000;

/** Tokens that a summary has, and the thinking before it. */
const expectedTokens = 2_000;

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

If the conversation begins with a summary of what came before, keep what of it still holds.`;

/**
 * Summarizes messages with the session's model, in a separate request that bypasses pi's hooks: the last request with an
 * instruction, if that is cheaper, or else, and if that fails, the conversation as a text, which writes nothing to the
 * provider's cache. Never rejects.
 */
export async function summarise(request: SummaryRequest, ctx: ExtensionContext): Promise<Summary> {
  const text = requestText(request);
  const continuation = cheaperContinuation(request, text);
  const ends = [ctx.signal, request.signal].filter((one) => one !== undefined);
  const signal = AbortSignal.any([...ends, AbortSignal.timeout(withinMs)]);
  const first = continuation === undefined ? undefined : await continued(continuation, request, { ctx, signal });
  if (first !== undefined && (!("failed" in first) || signal.aborted)) return first;
  if (text === undefined) return first ?? { failed: doesNotFit, usage: undefined };
  const options = { cacheRetention: "none", maxTokens: request.maxTokens } as const;
  const second = await answerTo(text, options, request, { ctx, signal });
  return first?.usage === undefined ? second : { ...second, usage: sumOf(first.usage, second.usage) };
}

function sumOf(one: SummaryUsage, other: SummaryUsage | undefined): SummaryUsage {
  return other === undefined ? one : { ...addUsage(one, other) };
}

interface Run {
  readonly ctx: ExtensionContext;
  readonly signal: AbortSignal;
}

/** Sends the last request again, with the instruction, instead of the request that pi makes. */
async function continued({ payload, maxTokens }: Continuation, request: SummaryRequest, run: Run): Promise<Summary> {
  let isSent = false;
  const options = {
    maxTokens,
    sessionId: run.ctx.sessionManager.getSessionId(),
    // pi since 1.5.1: the next request of the session continues a thread of the service, this one does not.
    disableContinuation: true,
    onPayload: (made: unknown) => {
      // pi can put another model in the place of this one, with which the last request was not made.
      if (!isRecord(made) || made["model"] !== payload["model"]) throw new Error("Another model would answer.");
      isSent = true;
      return payload;
    },
  };
  const answer = await answerTo(instructionOf(request), options, request, run);
  return isSent || "failed" in answer ? answer : { failed: "The request was not sent.", usage: answer.usage };
}

/** Asks the session's model. */
async function answerTo(
  text: string,
  options: Parameters<ExtensionContext["modelRegistry"]["streamSimple"]>[2],
  { model }: SummaryRequest,
  { ctx, signal }: Run,
): Promise<Summary> {
  try {
    const stream = ctx.modelRegistry.streamSimple(
      model,
      { messages: [{ role: "user", content: [{ type: "text", text }], timestamp: Date.now() }] },
      { ...options, signal },
    );
    // A provider that respects the signal ends with the cost of the request; a provider of an extension may ignore it.
    return outcomeOf(await unlessAborted(stream.result(), signal, graceMs));
  } catch (thrown) {
    return { failed: messageOf(thrown), usage: undefined };
  }
}

function requestText(request: SummaryRequest): string | undefined {
  const { model, messages, maxTokens, tokensOf } = request;
  for (const chars of resultChars) {
    const text = `<conversation>\n${transcriptOf(messages, chars)}\n</conversation>\n\n${instructionOf(request)}`;
    if (tokensOf(text) + maxTokens <= model.contextWindow) return text;
  }
  return undefined;
}

function instructionOf({ maxTokens, prompt, focus }: SummaryRequest): string {
  const words = Math.floor(maxTokens / 2);
  const wanted = focus === undefined || focus.trim() === "" ? "" : `\n\nThe user wants of it: ${focus.trim()}`;
  return `${prompt ?? instructions}${wanted}\n\nDo not answer the conversation and call no tools. Use at most ${words} words.`;
}

/** The last request with the instruction, if it fits and costs less than the other one, or that one does not fit. */
function cheaperContinuation(request: SummaryRequest, text: string | undefined): Continuation | undefined {
  const { model, last, maxTokens, tokensOf } = request;
  if (last === undefined) return undefined;
  const instruction = instructionOf(request);
  const made = continuationOf(last.payload, model.api, { ...last, text: instruction, maxTokens });
  const tokens = tokensOf(instruction);
  if (made === undefined || last.tokens + tokens + made.maxTokens > model.contextWindow) return undefined;
  if (text === undefined) return made;
  const summary = expectedTokens;
  const thinking = last.isThinking ? expectedTokens : 0;
  const requests = { last: last.tokens, cached: last.cachedTokens, instruction: tokens, transcript: tokensOf(text) };
  return isContinuationCheaper({ ...requests, summary, thinking }, model.cost) ? made : undefined;
}

function outcomeOf(message: Extract<AgentMessage, { role: "assistant" }>): Summary {
  const usage = isRecord(message.usage) ? message.usage : undefined;
  if (message.stopReason !== "stop") {
    return { failed: message.errorMessage ?? `The summary ended with "${message.stopReason}".`, usage };
  }
  if (message.content.some(({ type }) => type === "toolCall")) return { failed: "The summary called a tool.", usage };
  const text = message.content
    .flatMap((block) => (block.type === "text" ? [block.text] : []))
    .join("\n")
    .trim();
  return text === "" || usage === undefined ? { failed: "The summary is empty.", usage } : { text, usage };
}
