import { isObject, type SessionEntry } from "../../../extension/pi-types.ts";
import { COMPRESS_TOOL } from "../../../protocol/pruning/config.ts";
import { deniedMessage, nothingToCompress } from "../compress/messages.ts";
import { WAITS_FOR_USER } from "../mode.ts";
import { PRUNING_OFF } from "../switch.ts";

/**
 * The outcome of a compress call. `nothing`: failed, and nothing can be compressed. `held`: blocked, not the model's
 * fault.
 */
export type Outcome = "stored" | "failed" | "nothing" | "held";

const held: ReadonlySet<string> = new Set([WAITS_FOR_USER, PRUNING_OFF, deniedMessage]);
/** Contains the number of failures. */
const paused = /^Compression is paused after [0-9]{1,9} failures; continue with the task\.$/u;
/** Searched length of a result. UTF-16 units. */
const most = 4_096;

/** `undefined`: not the result of a compress call. */
export function outcomeOf(entry: SessionEntry): Outcome | undefined {
  if (entry.type !== "message" || entry.message.role !== "toolResult") return undefined;
  const { toolName, isError, content } = entry.message;
  if (toolName !== COMPRESS_TOOL) return undefined;
  if (isError !== true) return "stored";
  const text = Array.isArray(content) ? content.map(textOf).join("\n").slice(0, most) : "";
  // Compare whole lines, because a message can quote the model's arguments.
  const lines = text.split("\n");
  if (lines.some((line) => held.has(line) || paused.test(line))) return "held";
  return lines.includes(nothingToCompress) ? "nothing" : "failed";
}

function textOf(block: unknown): string {
  return isObject(block) && typeof block["text"] === "string" ? block["text"].slice(0, most) : "";
}
