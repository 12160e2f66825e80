import type { AgentMessage, SessionEntry } from "../../extension/pi-types.ts";
import { CARRIER_TYPE } from "../../protocol/link.ts";

/** Whether a message gets an id. */
export function hasId(message: AgentMessage, { tagAssistant }: { readonly tagAssistant: boolean }): boolean {
  switch (message.role) {
    case "user":
      return message.content?.length > 0;
    case "toolResult":
      return true;
    case "custom":
      return isShown(message);
    case "bashExecution":
      return message.excludeFromContext !== true;
    case "assistant":
      // pi omits failed answers from requests.
      return tagAssistant && message.stopReason !== "error" && message.stopReason !== "aborted";
    default:
      return false;
  }
}

/** Whether an entry is a message that gets an id when it is shown. Excludes answers of the model. */
export function isSpoken(entry: SessionEntry): boolean {
  // The file may be hand-written.
  if (entry.type === "custom_message") return isShown(entry);
  return entry.type === "message" && hasId(entry.message, { tagAssistant: false });
}

function isShown({
  customType,
  content,
}: {
  readonly customType: string;
  readonly content: string | readonly unknown[];
}) {
  return customType !== CARRIER_TYPE && content?.length > 0;
}
