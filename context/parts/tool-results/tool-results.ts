import type { ExtensionContext, ToolResultEvent } from "@earendil-works/pi-coding-agent";
import type { HostPort } from "../../../extension/engine-port.ts";
import { messageOf } from "../../../extension/pi-types.ts";
import { isRecord } from "../../../protocol/objects.ts";
import {
  defaultOptimisation,
  type OptimisationConfig,
  RECALL_TOOL,
  SKILL_TOOL,
} from "../../../protocol/optimisation/config.ts";
import type { ToolResultPolicy } from "../../../protocol/optimisation/options.ts";
import type { TokenEstimator } from "../estimator/estimator.ts";
import type { PartStatus } from "../optimisation/part-states.ts";
import { fromBlocks } from "../recall/content.ts";
import { keepPending, type PendingCuts } from "../recall/pending-cuts.ts";
import type { Recall } from "../recall/recall.ts";
import { noNumberLeft, RECALL_MARK, type RecallRecord, recallIdOf, recordMark } from "../recall/record.ts";
import { recallReport } from "../recall/report.ts";
import { readLog, spill, sumOf } from "../recall/spill.ts";
import { cutText } from "./cut.ts";
import type { Kept } from "./json-borders.ts";
import { isWholeRead } from "./whole-reads.ts";

type ToolResults = OptimisationConfig["toolResults"];

/** Tools whose results the model needs in full or that carry state. */
const neverCut: ReadonlySet<string> = new Set(["compress", RECALL_TOOL, SKILL_TOOL, "describe_tools"]);
const usual = { head: 1_000, tail: 2_000, above: 12_000 } as const;
const mebibyte = 1_048_576;

/** Counted since the part was loaded. */
interface Counts extends Record<string, number> {
  cut: number;
  charactersIn: number;
  charactersOut: number;
  /** Results that were not cut because their originals did not fit. */
  full: number;
}

export interface ToolResultsNeeds {
  readonly config: () => ToolResults;
  readonly recall: Recall;
  readonly estimator: Pick<TokenEstimator, "text">;
  readonly status: PartStatus;
  /** Directory of the originals. `undefined`: none, so nothing is cut. */
  readonly spillDirectory: () => string | undefined;
  readonly cuts: PendingCuts;
}

/** Cuts results of tools before they are stored, so that the stored text is the sent text. */
export function addToolResults({ pipeline }: Pick<HostPort, "pipeline">, needs: ToolResultsNeeds): void {
  const part = "toolResults";
  const counts: Counts = { cut: 0, charactersIn: 0, charactersOut: 0, full: 0 };
  needs.recall.need(() => needs.config().enabled);
  pipeline.use(
    "tool_result",
    "cap",
    (event, ctx) => {
      const config = needs.config();
      if (!config.enabled || neverCut.has(executedTool(event)) || isNested(event)) return undefined;
      const { text, images } = fromBlocks(event.content);
      const kept = keptOf(config, event, text.length);
      if (kept === undefined || isWholeRead(event, ctx)) return undefined;
      const made = cap(needs, event, { text, kept, maxBytes: config.spillMaxMiB * mebibyte, counts }, ctx);
      if (made === undefined) return undefined;
      counts.cut += 1;
      counts.charactersIn += text.length;
      counts.charactersOut += made.text.length;
      return {
        ...event,
        content: [{ type: "text", text: made.text }, ...images],
        details: made.details,
      } as ToolResultEvent;
    },
    part,
  );
  needs.status.inspect((ctx) => {
    const report = recallReport(needs, part, ctx);
    const spilledBytes = needs.recall.registry.spilledBytes(ctx.sessionManager);
    return { ...report, figures: { ...report.figures, ...counts, spilledBytes } };
  });
}

interface Wanted {
  readonly text: string;
  readonly kept: Kept;
  readonly maxBytes: number;
  readonly counts: Counts;
}

/** Writes the original to its file, then cuts the text. `undefined`: the result stays unchanged. */
function cap(
  { recall, estimator, status, spillDirectory, cuts }: ToolResultsNeeds,
  event: ToolResultEvent,
  { text, kept, maxBytes, counts }: Wanted,
  ctx: ExtensionContext,
) {
  const directory = spillDirectory();
  const missing = directory === undefined ? "There is no spill directory." : recall.missing();
  if (directory === undefined || missing !== undefined) {
    status.degraded(missing ?? "");
    return undefined;
  }
  const merged = event.details ?? {};
  if (!isRecord(merged) || Object.hasOwn(merged, RECALL_MARK)) return undefined;
  const log = logOf(event, text);
  const whole = log?.whole;
  const bytes = log?.bytes ?? Buffer.from(text.toWellFormed());
  const sum = sumOf(bytes);
  const used = recall.registry.spilledBytes(ctx.sessionManager);
  const isNew = !recall.registry.isSpilled(sum.sha256);
  if (isNew && used + sum.bytes > maxBytes) {
    counts.full += 1;
    status.degraded("The session has no room left for the originals of what would be cut.", {
      usedBytes: used,
      neededBytes: sum.bytes,
      maxBytes,
    });
    return undefined;
  }
  const number = recall.registry.reserve(ctx.sessionManager);
  if (number === undefined) {
    status.degraded(noNumberLeft);
    return undefined;
  }
  const made = cutText(whole === undefined ? { text } : { text, whole }, kept, recallIdOf(number));
  if (made === undefined) return undefined;
  try {
    spill(directory, bytes, sum);
  } catch (thrown) {
    // The message names a different file each time, so each result would be reported.
    const { code } = thrown as NodeJS.ErrnoException;
    const why = code ?? messageOf(thrown).slice(0, 512);
    status.degraded(`The original of a result could not be kept: ${why}`);
    return undefined;
  }
  if (isNew) recall.registry.spilled(sum.sha256, sum.bytes);
  // After a full store, smaller texts may still fit; the store stays reported as full.
  if (counts.full === 0) status.restored();
  const record: RecallRecord = {
    number,
    part: "toolResults",
    tool: event.toolName,
    tokens: Math.max(0, tokensOf(estimator, text) - estimator.text(made)),
    place: { kind: "spill", ...sum },
  };
  // Later extensions can replace the result's details.
  const { toolCallId } = event;
  keepPending(cuts, { sessionId: ctx.sessionManager.getSessionId(), toolCallId, record });
  return { text: made, details: { ...withoutCopy(merged), [RECALL_MARK]: recordMark(record) } };
}

/** Extrapolates from the beginning of a large text, because counting all of it would block pi. */
function tokensOf(estimator: ToolResultsNeeds["estimator"], text: string): number {
  if (text.length <= mebibyte) return estimator.text(text);
  return Math.round((estimator.text(text.slice(0, mebibyte)) * text.length) / mebibyte);
}

/** The lengths to keep of this result. `undefined`: all of it. */
function keptOf({ tools, errorTail }: ToolResults, event: ToolResultEvent, length: number): Kept | undefined {
  const { isError } = event;
  const policy = policyOf(tools, executedTool(event));
  const { keep, head = usual.head, tail = usual.tail, above = usual.above } = policy;
  if (keep === "none" || length <= above) return undefined;
  // The cause of an error is at the end.
  if (isError) return { head: 0, tail: errorTail };
  return { head: keep === "tail" ? 0 : head, tail: keep === "head" ? 0 : tail };
}

function policyOf(tools: ToolResults["tools"], name: string): ToolResultPolicy {
  if (Object.hasOwn(tools, name)) return tools[name] as ToolResultPolicy;
  const otherwise = Object.hasOwn(tools, "*") ? tools["*"] : defaultOptimisation.toolResults.tools["*"];
  return otherwise as ToolResultPolicy;
}

/**
 * Reads the log that pi's tool names in its details, or, if the command failed, only at the end of its text. A command
 * can print the name of any log, so the log must end with the whole shown text; otherwise shown text would be lost.
 */
function logOf(
  { toolName, details, isError }: ToolResultEvent,
  text: string,
): { readonly bytes: Buffer; readonly whole: string } | undefined {
  if (toolName !== "bash" && toolName !== "powershell") return undefined;
  const named = isRecord(details) ? details["fullOutputPath"] : undefined;
  const said = isError ? /Full output: ([^\]\n]{1,4096})\]\s[^[\]]{0,128}$/u.exec(text.slice(-4_400))?.[1] : undefined;
  const path = typeof named === "string" ? named : said;
  const noted = text.lastIndexOf("\n\n[Showing ");
  if (path === undefined || noted <= 0) return undefined;
  const bytes = readLog(path);
  const whole = bytes?.toString("utf8");
  if (bytes === undefined || whole === undefined) return undefined;
  const shown = text.slice(0, noted);
  // pi leaves out the last line end.
  return whole.endsWith(shown) || whole.endsWith(`${shown}\n`) ? { bytes, whole } : undefined;
}

/** pi's tools keep a copy of their result in the details, which would be stored as well. */
function withoutCopy(details: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const { truncation } = details;
  if (!isRecord(truncation) || typeof truncation["content"] !== "string") return details;
  return { ...details, truncation: { ...truncation, content: "" } };
}

/** Scripts receive the output of nested calls and need all of it. */
function isNested(event: ToolResultEvent): boolean {
  return "parentToolCallId" in event && event.parentToolCallId !== undefined;
}

/** The tool that made the result: `execute_tool` names the tool that it has run. */
export function executedTool({ toolName, details }: { readonly toolName: string; readonly details?: unknown }): string {
  if (toolName !== "execute_tool" || !isRecord(details)) return toolName;
  const { tool } = details;
  return typeof tool === "string" ? tool : toolName;
}
