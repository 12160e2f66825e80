import type { LogEntry } from "../../../provider/log.ts";

type Block = Readonly<Record<string, unknown>>;
interface Message {
  readonly role: string;
  readonly content: readonly Block[];
}

/** The messages of a request to Anthropic as they were sent, without marks for the cache: those move by themselves. */
export function messagesOf({ body }: LogEntry): readonly Message[] {
  const messages = body["messages"] as readonly {
    readonly role: string;
    readonly content: string | readonly Block[];
  }[];
  return messages.map(({ role, content }) => ({
    role,
    content: typeof content === "string" ? [{ type: "text", text: content }] : content.map(unmarked),
  }));
}

function unmarked({ cache_control: _, ...block }: Block): Block {
  return block;
}

/** What stands before the messages. */
export function headOf({ body }: LogEntry): string {
  const blocks = (name: string): readonly Block[] => ((body[name] ?? []) as readonly Block[]).map(unmarked);
  return JSON.stringify([blocks("system"), blocks("tools")]);
}

/** Without calls of compress and what was answered to them. */
export function withoutCompressing(messages: readonly Message[]): readonly Message[] {
  const calls = new Set(
    messages.flatMap(({ content }) =>
      content.filter(({ type, name }) => type === "tool_use" && name === "compress").map(({ id }) => id),
    ),
  );
  return messages.flatMap(({ role, content }) => {
    const left = content.filter(({ id, tool_use_id: of }) => !calls.has(id) && !calls.has(of));
    return left.length === 0 ? [] : [{ role, content: left }];
  });
}

/** How many messages both begin with, byte for byte. */
export function commonMessages(before: readonly Message[], after: readonly Message[]): number {
  const differs = before.findIndex((message, at) => JSON.stringify(message) !== JSON.stringify(after[at]));
  return differs === -1 ? before.length : differs;
}
