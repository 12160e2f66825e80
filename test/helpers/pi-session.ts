import type { ContextTarget } from "../../context/document/document.ts";
import type { Meta } from "../../protocol/link-context.ts";

/** The model that the tests' sessions were made with. */
export const sessionModel = { api: "openai-completions", provider: "scripted", model: "echo" } as const;

const { api, provider, model: id } = sessionModel;
export const sessionTarget: ContextTarget = { api, provider, id, takesImages: true };

/**
 * Writes a session of pi entry by entry, as pi itself appends them: each after the one before, unless specified
 * otherwise.
 */
export class PiSession {
  readonly entries: Meta[] = [{ type: "session", version: 3, id: "s-1", timestamp: isoTime(0), cwd: "/work" }];
  #leaf: string | null = null;
  #next = 1;

  /** Appends an entry and returns its id. */
  append(type: string, fields: Meta = {}): string {
    const n = this.#next++;
    const id = `e${n}`;
    this.entries.push({ type, id, parentId: this.#leaf, timestamp: isoTime(n), ...fields });
    this.#leaf = id;
    return id;
  }

  /** Continues after another entry; `null`: with another root. */
  branch(id: string | null): void {
    this.#leaf = id;
  }

  message(role: string, fields: Meta): string {
    return this.append("message", { message: { role, timestamp: 1_000 * this.#next, ...fields } });
  }

  system(text: string, sections: Meta = {}): string {
    return this.message("system", {
      content: text,
      sections,
      toolsAdded: [{ name: "bash", description: "", parameters: {} }],
    });
  }

  user(content: unknown): string {
    return this.message("user", { content: typeof content === "string" ? [text(content)] : content });
  }

  assistant(content: readonly unknown[], fields: Meta = {}): string {
    const hasCalls = content.some((block) => (block as Meta)["type"] === "toolCall");
    const stopReason = hasCalls ? "toolUse" : "stop";
    return this.message("assistant", { content, ...sessionModel, usage: usage(7), stopReason, ...fields });
  }

  result(toolCallId: string, content: unknown, fields: Meta = {}): string {
    const blocks = typeof content === "string" ? [text(content)] : content;
    return this.message("toolResult", { toolCallId, toolName: "bash", content: blocks, isError: false, ...fields });
  }

  compaction(summary: string, firstKeptEntryId: string | undefined, fields: Meta = {}): string {
    const own = `e${this.#next}`;
    return this.append("compaction", {
      summary,
      firstKeptEntryId: firstKeptEntryId ?? own,
      tokensBefore: 1234,
      ...fields,
    });
  }

  /** `null` omits the target. */
  edit(targetId: string, content: unknown): string {
    return this.append("context_edit", { targetId, replacement: content === null ? null : { content } });
  }
}

export function text(value: string): Meta {
  return { type: "text", text: value };
}

export function call(id: string, args: Meta = { command: id }): Meta {
  return { type: "toolCall", id, name: "bash", arguments: args };
}

export function thinking(value: string, signature?: string): Meta {
  return { type: "thinking", thinking: value, ...(signature === undefined ? {} : { thinkingSignature: signature }) };
}

export function usage(input: number): Meta {
  const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };
  return { input, output: 1, cacheRead: 0, cacheWrite: 0, totalTokens: input + 1, cost };
}

function isoTime(seconds: number): string {
  return new Date(1_700_000_000_000 + seconds * 1000).toISOString();
}
