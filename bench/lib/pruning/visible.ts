import type { LogEntry } from "../../../provider/log.ts";

/** A message with an id, as the model sees it in a request. */
export interface Visible {
  /** `m012`, or `b3`. */
  readonly id: string;
  /** The text before the tag. */
  readonly text: string;
  /** Number of the model's later answers in the request. */
  readonly answersBehind: number;
}

const tag = /<dcp-message-id>([mb]\d{1,9})<\/dcp-message-id>/g;

/** The messages with an id, in order, read only from the request, like a model. */
export function visibleIn({ messages }: Pick<LogEntry, "messages">): readonly Visible[] {
  const seen: (Omit<Visible, "answersBehind"> & { readonly answers: number })[] = [];
  let answers = 0;
  for (const message of messages) {
    if (message.role === "assistant") answers += 1;
    if (message.role === "system" || message.role === "assistant") continue;
    const text = [...message.toolResults.map((result) => result.text), ...message.texts].join("\n");
    let from = 0;
    for (const match of text.matchAll(tag)) {
      seen.push({ id: match[1] ?? "", text: text.slice(from, match.index), answers });
      from = match.index + match[0].length;
    }
  }
  return seen.map(({ answers: before, ...visible }) => ({ ...visible, answersBehind: answers - before }));
}

export function isBlock({ id }: Visible): boolean {
  return id.startsWith("b");
}

/** The text without its tags. */
export function untagged(text: string): string {
  return text.replaceAll(/\n?<dcp-message-id>[mb]\d{1,9}<\/dcp-message-id>/g, "");
}
