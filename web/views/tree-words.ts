import type { OutlineEntry } from "../../protocol/transcript-methods.ts";
import { oneLine } from "../state/pi-values.ts";

const kinds: ReadonlyMap<string, string> = new Map([
  ["compaction", "Compaction"],
  ["branch_summary", "Summary"],
  ["model_change", "Model"],
  ["thinking_level_change", "Thinking"],
  ["label", "Label"],
  ["session_info", "Name"],
  ["custom", "Extension"],
  ["custom_message", "Push"],
  ["context_edit", "Edit"],
]);

const roles: ReadonlyMap<string, string> = new Map([
  ["user", "User"],
  ["assistant", "Answer"],
  ["toolResult", "Result"],
  ["bashExecution", "Command"],
  ["system", "System"],
]);

/** pi's entry that notes a move in the tree. */
const moved = "pi-rpcd.navigated";

/** What an entry is; of an unknown kind its role or type, which is foreign text. */
export function kindOfEntry({ type, role = "", text }: OutlineEntry): string {
  if (type === "custom" && text === moved) return "Moved";
  return (type === "message" ? roles.get(role) : kinds.get(type)) ?? oneLine(role || type, 24);
}

/** Its first words, which are foreign text. */
export function wordsOfEntry({ type, role, text = "", tools = [] }: OutlineEntry): string {
  if (type === "custom" && text === moved) return "pi went on from here";
  if (role === "toolResult") return [tools.join(", "), oneLine(text, 200)].filter((part) => part !== "").join(": ");
  if (text !== "") return oneLine(text, 200);
  return tools.length === 0 ? "no text" : `calls ${tools.join(", ")}`;
}

/** Whether its message has a row of its own in a conversation. */
export function hasRow({ type, role }: OutlineEntry): boolean {
  if (type === "message") return role !== "toolResult";
  return ["compaction", "branch_summary", "custom_message"].includes(type);
}
