import { isRecord } from "../../protocol/objects.ts";
import { type Source, type Spending, unnamedModel } from "./tally.ts";
import { isNoUsage, isUnpriced, readUsage } from "./usage.ts";

type Fields = Readonly<Record<string, unknown>>;

const maxModelChars = 256;

/**
 * Returns what an entry of a session file adds to the session's cost, exactly as pi's `get_session_stats` does. Usage
 * elsewhere in an entry, such as a delegated session's in a tool's `details`, does not count again, and the delegated
 * session's own file is not read.
 */
export function spendingOf(entry: Fields): Spending | undefined {
  const { type, usage, message } = entry;
  switch (type) {
    case "usage":
      // pi has one kind so far: requests outside the conversation.
      return spent(usage, "cache_warm", modelOf(entry["provider"], entry["model"]));
    case "compaction":
    case "branch_summary":
      return spent(usage, type, unnamedModel);
    case "message":
      return isRecord(message) ? messageSpending(message) : undefined;
    default:
      return undefined;
  }
}

function messageSpending(message: Fields): Spending | undefined {
  const { role, usage, provider, model, responseModel, stopReason } = message;
  if (role === "toolResult") return spent(usage, "tool", unnamedModel);
  if (role !== "assistant") return undefined;
  const name = modelOf(provider, typeof responseModel === "string" ? responseModel : model);
  return spent(usage, stopReason === "error" || stopReason === "aborted" ? "discarded" : "assistant", name);
}

function spent(given: unknown, source: Source, model: string): Spending | undefined {
  const usage = readUsage(given);
  if (usage === undefined || isNoUsage(usage)) return undefined;
  // A tool's usage covers any number of requests made elsewhere.
  const requests = source === "tool" ? 0 : 1;
  return { usage, source, model, requests, isUnpriced: isUnpriced(given, usage) };
}

export function modelOf(provider: unknown, model: unknown): string {
  if (typeof provider !== "string" || typeof model !== "string") return unnamedModel;
  return `${provider}/${model}`.slice(0, maxModelChars).toWellFormed();
}
