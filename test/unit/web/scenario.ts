import type { SessionInfo } from "../../../client/browser.ts";
import { Conversation } from "../../../web/state/conversation.ts";
import type { SessionNotification } from "../../../web/state/daemon.ts";
import type { Item } from "../../../web/state/items.ts";
import { done } from "../../../web/state/outcome.ts";
import { FakeDaemon, settled } from "./fake-daemon.ts";
import { FakePage } from "./fake-page.ts";

const sessionId = "s1";

type Value = Readonly<Record<string, unknown>>;

/** An entry of a session's file with a message. */
export function entry(id: string, message: Value): Value & { type: string; id: string; parentId: null } {
  return { type: "message", id, parentId: null, timestamp: "2026-01-01T00:00:00.000Z", message };
}

export function user(text: string, timestamp: number): Value {
  return { role: "user", content: text, timestamp };
}

export function answer(timestamp: number, content: readonly unknown[], fields: Value = {}): Value {
  return {
    role: "assistant",
    content,
    model: "model-1",
    provider: "scripted",
    stopReason: "stop",
    timestamp,
    ...fields,
  };
}

export const text = (words: string): Value => ({ type: "text", text: words });
export const call = (id: string, name: string, args: Value): Value => ({ type: "toolCall", id, name, arguments: args });

export function toolResult(toolCallId: string, words: string, timestamp: number, fields: Value = {}): Value {
  return {
    role: "toolResult",
    toolCallId,
    toolName: "bash",
    content: [text(words)],
    isError: false,
    timestamp,
    ...fields,
  };
}

/** One conversation with a fake daemon. Events get the next number of the log. */
export class Scene {
  readonly daemon = new FakeDaemon();
  readonly page = new FakePage();
  readonly notified: SessionNotification[] = [];
  info: SessionInfo | undefined;
  missed = 0;
  seq: number;
  #conversation: Conversation | undefined;

  /** `cursor`: the number of the newest notification before the page is opened. */
  constructor(cursor = 0) {
    this.seq = cursor;
    this.history([]);
  }

  get conversation(): Conversation {
    if (this.#conversation === undefined) throw new Error("The conversation is not open.");
    return this.#conversation;
  }

  history(entries: readonly unknown[], fields: Value = {}): void {
    this.daemon.answer("transcript/page", { entries, leafId: null, cursor: this.seq, epoch: "a", ...fields });
  }

  async open(): Promise<void> {
    const { daemon, page } = this;
    this.#conversation = new Conversation({
      daemon,
      page,
      sessionId,
      info: () => this.info,
      resend: async () => done,
      onNotification: (notification) => this.notified.push(notification),
      onMissed: () => {
        this.missed += 1;
      },
      onGone: () => {},
    });
    await settled();
  }

  /** pi's event, as the daemon sends it. */
  event(event: Value, seq?: number): void {
    this.notify("session/event", { generation: 1, event }, seq);
  }

  notify(name: SessionNotification["name"], params: Value, seq?: number): void {
    if (seq === undefined) this.seq += 1;
    const all = { sessionId, seq: seq ?? this.seq, at: 5_000, ...params };
    this.daemon.notify({ name, params: all } as unknown as SessionNotification);
  }

  delta(index: number, delta: string, kind = "text"): void {
    this.event({
      type: "message_update",
      assistantMessageEvent: { type: `${kind}_delta`, contentIndex: index, delta },
    });
  }

  start(index: number, kind = "text", fields: Value = {}): void {
    this.event({
      type: "message_update",
      assistantMessageEvent: { type: `${kind}_start`, contentIndex: index, ...fields },
    });
  }

  begin(message: Value): void {
    this.event({ type: "message_start", message });
  }

  end(message: Value): void {
    this.event({ type: "message_end", message });
  }

  get items(): readonly Item[] {
    return this.conversation.groups.value.flatMap(({ rows }) => rows.value.map(({ item }) => item.value));
  }

  /** The items in short: their kind and words. */
  get shown(): readonly string[] {
    return this.items.map(inShort);
  }
}

function inShort(item: Item): string {
  switch (item.kind) {
    case "user":
      return `user: ${item.text.text.value}`;
    case "text":
    case "thought":
      return `${item.kind}${item.progress === "whole" ? "" : ` (${item.progress})`}: ${item.text.text.value}`;
    case "tool":
      return `tool ${item.name} ${item.what} (${item.state})${item.output === undefined ? "" : `: ${item.output.text.value}`}`;
    case "push":
      return `push ${item.customType} (${item.state ?? "?"}): ${item.text.text.value}`;
    case "note":
      return `note ${item.about}: ${item.words}`;
    case "gap":
      return `gap: ${item.words}`;
  }
}
