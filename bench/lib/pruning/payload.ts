import type { LogEntry } from "../../../provider/log.ts";

type Block = Readonly<Record<string, unknown>>;

/** A message of a payload, in Anthropic's or OpenAI's chat format. */
export interface PayloadMessage {
  readonly role: string;
  readonly content: readonly Block[];
  readonly [field: string]: unknown;
}

/** The messages of a request as sent, without cache marks, which move by themselves. */
export function messagesOf({ body }: Pick<LogEntry, "body">): readonly PayloadMessage[] {
  return ((body["messages"] ?? []) as readonly Block[]).map(({ content, role, ...message }) => ({
    ...message,
    role: String(role),
    content: typeof content === "string" ? [{ type: "text", text: content }] : blocks(content),
  }));
}

/** The part of a request in Anthropic's format that precedes its messages. */
export function headOf({ body }: Pick<LogEntry, "body">): string {
  return JSON.stringify([blocks(body["system"]), blocks(body["tools"])]);
}

function blocks(value: unknown): readonly Block[] {
  return ((value ?? []) as readonly Block[]).map(({ cache_control: _, ...block }) => block);
}

/** Without compress calls and their results, in Anthropic's format. */
export function withoutCompressing(messages: readonly PayloadMessage[]): readonly PayloadMessage[] {
  const calls = new Set(
    messages.flatMap(({ content }) =>
      content.filter(({ type, name }) => type === "tool_use" && name === "compress").map(({ id }) => id),
    ),
  );
  return messages.flatMap(({ role, content }) => {
    const left = content.filter(({ id, tool_use_id: of }) => !calls.has(id ?? of));
    return left.length === 0 ? [] : [{ role, content: left }];
  });
}

/** The number of identical messages at the beginning, byte for byte. */
export function commonMessages(before: readonly PayloadMessage[], after: readonly PayloadMessage[]): number {
  const differs = before.findIndex((message, at) => JSON.stringify(message) !== JSON.stringify(after[at]));
  return differs === -1 ? before.length : differs;
}

const reminder = "<dcp-system-reminder>";

/** Without the reminder at the end, which is in one request only. */
export function withoutReminder(messages: readonly PayloadMessage[]): readonly PayloadMessage[] {
  return messages.flatMap((message) => {
    const content = message.content.filter(({ text }) => typeof text !== "string" || !text.includes(reminder));
    return content.length === 0 && message.content.length > 0 ? [] : [{ ...message, content }];
  });
}

/** Checks whether requests begin with the complete previous request. */
export class PrefixWatch {
  /** Number of compared requests, and of those with the same prefix. */
  readonly counts = { requests: 0, same: 0 };
  #before: readonly PayloadMessage[] | undefined;

  /** `mayDiffer`: the model has just compressed, which changes earlier context. */
  take(request: LogEntry, mayDiffer: boolean): void {
    const messages = withoutReminder(messagesOf(request));
    if (this.#before !== undefined && !mayDiffer) {
      this.counts.requests += 1;
      if (commonMessages(this.#before, messages) === this.#before.length) this.counts.same += 1;
    }
    this.#before = messages;
  }
}
