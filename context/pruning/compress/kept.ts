import type { AgentMessage } from "../../../extension/pi-types.ts";
import { isRecord } from "../../../protocol/objects.ts";
import { fromBlocks } from "../../parts/recall/content.ts";
import type { Kept } from "./resolve.ts";
import type { Place } from "./view.ts";

/** UTF-16 units of one text. */
const mostOfUser = 2_000;
const mostOfOutput = 4_000;
const mostTitle = 200;
/** UTF-16 units of all verbatim texts of a block. */
export const mostKept = 1_000_000;

export interface KeepRules {
  readonly users: boolean;
  /** Whether a block keeps the output of this call. */
  readonly isProtected: (tool: string, args: unknown) => boolean;
}

/** The texts of a range that its block keeps verbatim: messages of the user and protected outputs. */
export function keptOf(places: readonly Place[], rules: KeepRules): Kept[] {
  const calls = new Map<string, unknown>();
  return places.flatMap(({ messages, id }) => {
    const named = id === undefined ? "" : ` (${id})`;
    return messages.flatMap((message) => {
      if (message.role === "assistant") {
        for (const part of message.content) if (part.type === "toolCall") calls.set(part.id, part.arguments);
      }
      const kept = keptIn(message, calls, rules);
      if (kept === undefined || kept.text.trim() === "") return [];
      const title = `${kept.subject.slice(0, mostTitle).toWellFormed()}${named}:`;
      return [{ title, text: shortened(kept.text, kept.most) }];
    });
  });
}

function keptIn(message: AgentMessage, calls: ReadonlyMap<string, unknown>, { users, isProtected }: KeepRules) {
  if (message.role === "user" && users) {
    return { subject: "The user", text: fromBlocks(message.content).text, most: mostOfUser };
  }
  if (message.role === "toolResult") {
    const args = calls.get(message.toolCallId);
    if (!isProtected(message.toolName, args)) return undefined;
    const subject = `Output of ${message.toolName}${subjectOf(args)}`;
    return { subject, text: fromBlocks(message.content).text, most: mostOfOutput };
  }
  if (message.role === "bashExecution" && message.excludeFromContext !== true) {
    const args = { command: message.command };
    if (!isProtected("bash", args)) return undefined;
    return { subject: `Output of bash${subjectOf(args)}`, text: message.output, most: mostOfOutput };
  }
  return undefined;
}

/** The path or command of a call. */
function subjectOf(args: unknown): string {
  if (!isRecord(args)) return "";
  const subject = [args["path"], args["file_path"], args["command"]].find((value) => typeof value === "string");
  return typeof subject === "string" ? ` ${subject.slice(0, 100).replaceAll(/\s+/gu, " ")}` : "";
}

function shortened(text: string, most: number): string {
  if (text.length <= most) return text.toWellFormed();
  return `${text.slice(0, most).toWellFormed()}\n[… ${text.length - most} more characters]`;
}
