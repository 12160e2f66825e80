import type { ExtensionContext, ToolResultEvent } from "@earendil-works/pi-coding-agent";
import { isObject, messageOf } from "../../../extension/pi-types.ts";
import {
  defaultOptimisation,
  type OptimisationConfig,
  RECALL_TOOL,
  SKILL_TOOL,
} from "../../../protocol/optimisation/config.ts";
import type { ToolResultPolicy } from "../../../protocol/optimisation/options.ts";
import type { PartContext } from "../optimisation/part-context.ts";
import { fromBlocks } from "../recall/content.ts";
import { keepPending, keptCuts } from "../recall/pending-cuts.ts";
import { noNumberLeft, RECALL_MARK, type RecallRecord, recallIdOf, recordMark } from "../recall/record.ts";
import { recallReport } from "../recall/report.ts";
import { readLog, spill, sumOf } from "../recall/spill.ts";
import { executedTool } from "../tools/executed.ts";
import { cutText } from "./cut.ts";
import type { Kept } from "./json-borders.ts";

type ToolResults = OptimisationConfig["toolResults"];

/** What the model asks for whole, and what carries state. */
const neverCut: ReadonlySet<string> = new Set(["compress", RECALL_TOOL, SKILL_TOOL, "describe_tools"]);
const usual = { head: 1_000, tail: 2_000, above: 12_000 } as const;
const mebibyte = 1_048_576;

/** Since the session's pi has the part. */
interface Counts extends Record<string, number> {
  cut: number;
  charactersIn: number;
  charactersOut: number;
  /** Results for whose originals there was no room. */
  full: number;
}

/** Cuts results of tools before they are stored, so that what is stored is what is sent. */
export function addToolResults(host: PartContext): void {
  const part = "toolResults";
  const counts: Counts = { cut: 0, charactersIn: 0, charactersOut: 0, full: 0 };
  host.recall.need(() => host.config().toolResults.enabled);
  host.pipeline.use(
    "tool_result",
    "cap",
    (event, ctx) => {
      const config = host.config().toolResults;
      if (!config.enabled || neverCut.has(executedTool(event)) || isNested(event)) return undefined;
      const { text, images } = fromBlocks(event.content);
      const kept = keptOf(config, event, text.length);
      if (kept === undefined) return undefined;
      const made = cap(host, event, { text, kept, maxBytes: config.spillMaxMiB * mebibyte, counts }, ctx);
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
  host.inspect(part, (ctx) => {
    const report = recallReport(host, part, ctx);
    const spilledBytes = host.recall.registry.spilledBytes(ctx.sessionManager);
    return { ...report, figures: { ...report.figures, ...counts, spilledBytes } };
  });
}

interface Wanted {
  readonly text: string;
  readonly kept: Kept;
  readonly maxBytes: number;
  readonly counts: Counts;
}

/** The original is in its file before anything is cut. `undefined`: the result stays as it is. */
function cap(
  host: PartContext,
  event: ToolResultEvent,
  { text, kept, maxBytes, counts }: Wanted,
  ctx: ExtensionContext,
) {
  const { recall, memory, estimator } = host;
  const directory = memory.parts?.spillDirectory;
  const missing = directory === undefined ? "There is no spill directory." : recall.missing();
  if (directory === undefined || missing !== undefined) {
    host.degraded("toolResults", missing ?? "");
    return undefined;
  }
  const merged = event.details ?? {};
  if (!isObject(merged) || Object.hasOwn(merged, RECALL_MARK)) return undefined;
  const log = logOf(event, text);
  const whole = log?.whole;
  const bytes = log?.bytes ?? Buffer.from(text.toWellFormed());
  const sum = sumOf(bytes);
  const used = recall.registry.spilledBytes(ctx.sessionManager);
  const isNew = !recall.registry.isSpilled(sum.sha256);
  if (isNew && used + sum.bytes > maxBytes) {
    counts.full += 1;
    host.degraded("toolResults", "The session has no room left for the originals of what would be cut.", {
      usedBytes: used,
      neededBytes: sum.bytes,
      maxBytes,
    });
    return undefined;
  }
  const number = recall.registry.reserve(ctx.sessionManager);
  if (number === undefined) {
    host.degraded("toolResults", noNumberLeft);
    return undefined;
  }
  const made = cutText(whole === undefined ? { text } : { text, whole }, kept, recallIdOf(number));
  if (made === undefined) return undefined;
  try {
    spill(directory, bytes, sum);
  } catch (thrown) {
    // The message names a file that is another each time: it would be told anew for each result.
    const { code } = thrown as NodeJS.ErrnoException;
    const why = code ?? messageOf(thrown).slice(0, 512);
    host.degraded("toolResults", `The original of a result could not be kept: ${why}`);
    return undefined;
  }
  if (isNew) recall.registry.spilled(sum.sha256, sum.bytes);
  // A smaller text may find room where a larger one has found none, which is told once.
  if (counts.full === 0) host.restored("toolResults");
  const record: RecallRecord = {
    number,
    part: "toolResults",
    tool: event.toolName,
    tokens: Math.max(0, tokensOf(estimator, text) - estimator.text(made)),
    place: { kind: "spill", ...sum },
  };
  // Later extensions can replace the result's details.
  const { toolCallId } = event;
  keepPending(keptCuts(memory), { sessionId: ctx.sessionManager.getSessionId(), toolCallId, record });
  return { text: made, details: { ...withoutCopy(merged), [RECALL_MARK]: recordMark(record) } };
}

/** Extrapolates from the beginning of a large text, because counting all of it would block pi. */
function tokensOf(estimator: PartContext["estimator"], text: string): number {
  if (text.length <= mebibyte) return estimator.text(text);
  return Math.round((estimator.text(text.slice(0, mebibyte)) * text.length) / mebibyte);
}

/** What stays of this result. `undefined`: all. */
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
 * The log that pi's tool has named: in its details, or, where the command failed, at the end of its text alone. A command
 * can print the name of any log, so it has to end with all that is shown: what it does not have would be lost.
 */
function logOf(
  { toolName, details, isError }: ToolResultEvent,
  text: string,
): { readonly bytes: Buffer; readonly whole: string } | undefined {
  if (toolName !== "bash" && toolName !== "powershell") return undefined;
  const named = isObject(details) ? details["fullOutputPath"] : undefined;
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

/** pi's tools keep a copy of what they give: it would be stored as well. */
function withoutCopy(details: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const { truncation } = details;
  if (!isObject(truncation) || typeof truncation["content"] !== "string") return details;
  return { ...details, truncation: { ...truncation, content: "" } };
}

/** Scripts get the output of nested calls, and need it whole. */
function isNested(event: ToolResultEvent): boolean {
  return "parentToolCallId" in event && event.parentToolCallId !== undefined;
}
