import type { AgentToolResult, ExtensionContext, ToolDefinition } from "@earendil-works/pi-coding-agent";
import type { TSchema } from "typebox";
import { percent } from "../../../protocol/number-text.ts";
import { COMPRESS_TOOL } from "../../../protocol/pruning/config.ts";
import type { NewerFields } from "../../parts/tools/pi-tools.ts";
import type { PruningServices, Usage } from "../pruning-services.ts";
import type { BlocksRecord } from "../record.ts";
import { PRUNING_OFF } from "../switch.ts";
import { type CompressCall, mostRanges, mostSummary, mostTopic, readCall } from "./call.ts";
import type { Candidate } from "./candidates.ts";
import type { Asker, Compressed, Compressor } from "./compressor.ts";
import { breakerMessage, deniedMessage, mostCandidates, notAllowedMessage, nothingToCompress } from "./messages.ts";
import type { StoredBlocks } from "./stored-blocks.ts";

/** How long the user has to allow a call. */
const askedMs = 60_000;

const text = (maxLength: number, description: string) => ({ type: "string", minLength: 1, maxLength, description });
const parameters = {
  type: "object",
  properties: {
    topic: text(mostTopic, "3 to 5 words."),
    ranges: {
      type: "array",
      minItems: 1,
      maxItems: mostRanges,
      items: {
        type: "object",
        properties: {
          startId: text(256, "mNNN or bN."),
          endId: text(256, "mNNN or bN."),
          summary: text(mostSummary, "Takes the range's place."),
        },
        required: ["startId", "endId", "summary"],
      },
    },
  },
  required: ["topic", "ranges"],
} as unknown as TSchema;

interface CompressTool {
  readonly host: Pick<PruningServices, "context" | "pruning" | "off" | "breaker" | "usage">;
  readonly compressor: Compressor;
  /** Receives the blocks of a successful call. */
  readonly made: (callId: string, made: Extract<Compressed, { kind: "made" }>) => void;
  /** Whether placeholders were already wrong in this run; `seen` records it. */
  readonly wrongPlaceholders: { isKnown(): boolean; seen(): void };
  /** The tool's description for the model. */
  readonly description: string;
}

/** The tool with which the model replaces ranges of its context by summaries. */
export function compressTool(
  tool: CompressTool,
): ToolDefinition<TSchema, BlocksRecord> & Pick<NewerFields, "exposure"> {
  return {
    name: COMPRESS_TOOL,
    // Calls from scripts leave no results that could store blocks. pi 0.87 has no scripts and ignores the field.
    exposure: "model-only",
    label: COMPRESS_TOOL,
    description: tool.description,
    parameters,
    executionMode: "sequential",
    // pi uses the thrown error as the call's result. Its own argument check reports only one error, in other words.
    prepareArguments: (args) => {
      const ctx = tool.host.context();
      if (ctx !== undefined) letThrough(tool, ctx);
      const read = readCall(args);
      if ("call" in read) return read.call;
      throw new Error(ctx === undefined ? read.findings.join("\n") : withCandidates(tool, read.findings, ctx));
    },
    execute: async (callId, params, signal, _onUpdate, ctx) =>
      await answer(tool, callId, params as CompressCall, signal, ctx),
  };
}

function withCandidates({ compressor }: CompressTool, findings: readonly string[], ctx: ExtensionContext): string {
  return refusedText(findings, compressor.candidates(ctx));
}

async function answer(
  tool: CompressTool,
  callId: string,
  call: CompressCall,
  signal: AbortSignal | undefined,
  ctx: ExtensionContext,
): Promise<AgentToolResult<BlocksRecord>> {
  letThrough(tool, ctx);
  const { permission } = tool.host.pruning().compress;
  const asker: Asker = { callId, placeholders: placeholdersOf(tool) };
  const first = made(tool, call, asker, ctx);
  if (permission === "ask") await ask(first, signal, ctx);
  // Blocks can change while the dialog is open.
  const compressed = permission === "ask" ? made(tool, call, asker, ctx) : first;
  const words = madeText(compressed, tool.host.usage(ctx));
  tool.made(callId, compressed);
  return { content: [{ type: "text", text: words }], details: compressed.record };
}

/** Throws if compression is off, denied or paused. */
function letThrough({ host }: CompressTool, ctx: ExtensionContext): void {
  if (host.off(ctx) !== undefined) throw new Error(PRUNING_OFF);
  if (host.pruning().compress.permission === "deny") throw new Error(deniedMessage);
  const failures = host.breaker(ctx);
  if (failures !== undefined) throw new Error(breakerMessage(failures));
}

function made(tool: CompressTool, call: CompressCall, asker: Asker, ctx: ExtensionContext) {
  const compressed = tool.compressor.compress(call, asker, ctx);
  if (compressed.kind === "made") return compressed;
  if (compressed.hasPlaceholders) tool.wrongPlaceholders.seen();
  throw new Error(refusedText(compressed.problems, compressed.candidates));
}

function placeholdersOf({ host, wrongPlaceholders }: CompressTool): Asker["placeholders"] {
  const { placeholderMode } = host.pruning().compress;
  if (placeholderMode !== "adaptive") return placeholderMode;
  return wrongPlaceholders.isKnown() ? "lenient" : "strict";
}

async function ask(
  { record, ranges }: Extract<Compressed, { kind: "made" }>,
  signal: AbortSignal | undefined,
  { ui, hasUI }: ExtensionContext,
): Promise<void> {
  const what = ranges.map(
    ({ label, tokensBefore, tokensAfter }) => `${label}: ${tokensBefore} → ${tokensAfter} tokens`,
  );
  const question = [`"${record.topic}"`, ...what].join("\n");
  const options = { timeout: askedMs, ...(signal === undefined ? {} : { signal }) };
  if (!hasUI || !(await ui.confirm("Compress this part of the context?", question, options))) {
    throw new Error(notAllowedMessage);
  }
}

/** The result text of a successful call: each block, each widened range, and the window usage. */
function madeText({ record, ranges }: Extract<Compressed, { kind: "made" }>, before: Usage | undefined): string {
  const lines = record.blocks.map(({ id, tokensBefore, tokensAfter }, at) => {
    const range = ranges[at];
    const repaired = range?.isRepaired === true ? ["Its placeholders were put right."] : [];
    const said = [...(range?.widened ?? []), ...repaired].map((sentence) => ` ${sentence}`).join("");
    return `${id} stands for ${range?.label ?? ""}: about ${tokensBefore} tokens before, ${tokensAfter} now.${said}`;
  });
  const freed = record.blocks.reduce((sum, block) => sum + block.tokensBefore - block.tokensAfter, 0);
  return [...lines, ...(before === undefined ? [] : [usageText(before, freed)])].join("\n");
}

function usageText({ tokens, window }: Usage, freed: number): string {
  const left = Math.max(0, Math.round(tokens - freed));
  return `The context is now about ${left} of ${window} tokens (${percent(left / window)}).`;
}

/** The error text of a refused call: all problems, and the ranges that can be compressed. */
function refusedText(problems: readonly string[], candidates: readonly Candidate[]): string {
  const ranges = candidates
    .slice(0, mostCandidates)
    .map(({ startId, endId, tokens }) => `${startId}–${endId} (about ${tokens} tokens)`);
  const last = ranges.length === 0 ? nothingToCompress : `Ranges that can be compressed: ${ranges.join(", ")}.`;
  return [...problems, last].join("\n");
}

const part = "compress";

/**
 * Registers the compress tool when pruning is on, unless another extension has a tool of that name: pi uses the first
 * one, and ours would hide it.
 */
export function addCompress(
  { on, onSession }: Pick<PruningServices, "on" | "onSession">,
  {
    pi,
    pruning,
    prompts,
    conflict,
    notify,
  }: Pick<PruningServices, "pi" | "pruning" | "prompts" | "conflict" | "notify">,
  { stored, compressor, host }: Pick<CompressTool, "compressor" | "host"> & { readonly stored: StoredBlocks },
): void {
  let state: "none" | "ours" | "theirs" = "none";
  let isKnown = false;
  const wrongPlaceholders = {
    isKnown: (): boolean => isKnown,
    seen: (): void => {
      isKnown = true;
    },
  };
  const provide = (): void => {
    if (state === "ours" || !pruning().enabled) return;
    const isTaken = pi.getAllTools().some(({ name }) => name === COMPRESS_TOOL);
    if (isTaken && state === "theirs") return;
    state = isTaken ? "theirs" : "ours";
    if (isTaken) {
      const why = `Another extension has a tool named ${COMPRESS_TOOL}.`;
      conflict(why);
      notify("pruning/degraded", { reason: "tool_conflict", message: why });
      return;
    }
    conflict(undefined);
    const made: CompressTool["made"] = (callId, compressed) => stored.made(callId, compressed);
    pi.registerTool(compressTool({ host, compressor, made, wrongPlaceholders, description: prompts.text("compress") }));
  };
  onSession(provide, part);
  on(part, "before_agent_start", provide);
  on(part, "agent_start", provide);
  on(part, "agent_settled", () => {
    isKnown = false;
  });
}
