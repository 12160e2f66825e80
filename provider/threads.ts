import { isObject, type JsonObject, objectsOf, stringOf } from "./json.ts";

/** The maximum of kept conversations; beyond it the oldest are dropped. */
const maxKept = 1_000;

type Conversation = Readonly<Record<"system" | "tools" | "messages", unknown>>;

/**
 * Anthropic's message threads: the service keeps the conversation of a request that creates a thread, and a later
 * request continues it with new messages only. pi uses them where a model has `supportsMessageThreads`.
 */
export class MessageThreads {
  /** By the id of the answer, after which the conversation can be continued once. */
  readonly #kept = new Map<string, Conversation>();

  /** A request with its complete conversation. `undefined`: its thread is unknown or already continued. */
  complete(body: JsonObject): JsonObject | undefined {
    const { thread } = body;
    if (!isObject(thread) || thread["type"] !== "continue") return body;
    const id = stringOf(thread["previous_message_id"]);
    const kept = this.#kept.get(id);
    this.#kept.delete(id);
    return kept && { ...body, ...kept, messages: [...objectsOf(kept.messages), ...objectsOf(body["messages"])] };
  }

  /** Keeps a complete request with its answer, if it belongs to a thread. */
  keep({ thread, system, tools, messages }: JsonObject, answerOf: () => unknown): void {
    const answer = isObject(thread) ? answerOf() : undefined;
    if (!isObject(answer)) return;
    const { id, role, content } = answer;
    const all = [...objectsOf(messages).map(withoutMarks), { role, content }];
    this.#kept.set(stringOf(id), { system, tools, messages: all });
    for (const oldest of this.#kept.size > maxKept ? this.#kept.keys() : []) {
      this.#kept.delete(oldest);
      break;
    }
  }
}

/** The next request has its own marks. */
function withoutMarks(message: JsonObject): JsonObject {
  const { content } = message;
  if (!Array.isArray(content)) return message;
  return { ...message, content: objectsOf(content).map(({ cache_control: _, ...block }) => block) };
}
