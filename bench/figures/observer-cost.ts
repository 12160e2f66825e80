import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import { releaseMemory } from "../../extension/memory.ts";
import { findOrOpenEngine } from "../../extension/open.ts";
import { DELIVERY_MARK } from "../../protocol/link.ts";
import type { Figure, Row } from "../lib/figure.ts";
import { quantile } from "../lib/statistics.ts";

const contextMessages = 200;
const requests = 2_000;

type Handler = (event: unknown, ctx: ExtensionContext) => unknown;

/** The helper's own handlers for one request, called with pi's arguments. */
export const observerCost: Figure = {
  title: `What the observer adds to a model request, with a context of ${contextMessages} messages`,
  repetitions: 5,
  measure: async ({ repetitions }) => {
    const rows: Row[] = [];
    for (const pushes of [0, 1, 10]) {
      const values = { p50: [] as number[], p99: [] as number[] };
      for (let repetition = 0; repetition <= repetitions; repetition += 1) {
        const samples = measureRequests(pushes);
        if (repetition === 0) continue;
        values.p50.push(quantile(samples, 0.5));
        values.p99.push(quantile(samples, 0.99));
      }
      const goal = { id: "observer", sense: "at most", target: 1 } as const;
      rows.push(
        { name: `${pushes} standing pushes, p50`, unit: "ms", values: values.p50 },
        { name: `${pushes} standing pushes, p99`, unit: "ms", values: values.p99, goal },
      );
    }
    return { rows, notes: [`${requests} requests for each value; messages of 1 to 4 KB, pushes of 2 KB`] };
  },
};

function measureRequests(pushes: number): Float64Array {
  const handlers = new Map<string, Handler[]>();
  const pi = {
    on: (name: string, handler: Handler) => void handlers.set(name, [...(handlers.get(name) ?? []), handler]),
    registerCommand: () => {},
    sendMessage: () => {},
    events: { on: () => () => {}, emit: () => {} },
  };
  const { memory } = findOrOpenEngine(pi as unknown as ExtensionAPI);
  const contents = Array.from({ length: pushes }, (_, i) => `Push ${i}: ${"words and more words ".repeat(100)}`);
  const messages = conversation(contents);
  const entries = messages.map((message, i) => ({
    id: `e${i}`,
    parentId: i === 0 ? null : `e${i - 1}`,
    timestamp: "",
    ...(message.role === "custom" ? { ...message, type: "custom_message" } : { type: "message", message }),
  }));
  const ctx = {
    isIdle: () => false,
    hasPendingMessages: () => false,
    signal: undefined,
    getSystemPrompt: () => "You are helpful.",
    ui: { setStatus: () => {} },
    sessionManager: {
      getLeafEntry: () => entries.at(-1),
      getLeafId: () => entries.at(-1)?.id,
      getEntry: (id: string) => entries[Number(id.slice(1))],
      getBranch: () => entries,
      getEntries: () => entries,
    },
  } as unknown as ExtensionContext;
  const payload = {
    model: "m",
    messages: messages.map(({ role, content }) => ({ role: role === "custom" ? "user" : role, content })),
  };
  const samples = new Float64Array(requests);
  for (let i = 0; i < requests; i += 1) {
    for (const [n, content] of contents.entries()) {
      memory.inserted.set(`d${n}`, {
        deliveryId: `d${n}`,
        entryId: `e${contextMessages - pushes + n}`,
        content,
        isDelivered: false,
      });
    }
    const say = (name: string, event: unknown): void => {
      for (const handler of handlers.get(name) ?? []) handler(event, ctx);
    };
    const assistant = { role: "assistant", api: "openai-completions", content: [] };
    const startedAt = performance.now();
    say("context_with_system", { messages });
    say("before_provider_request", { payload });
    say("after_provider_response", { status: 200, headers: {} });
    say("message_start", { message: { ...assistant, stopReason: "pending" } });
    say("message_end", { message: { ...assistant, stopReason: "stop" } });
    samples[i] = performance.now() - startedAt;
    if (pushes > 0 && memory.inserted.size > 0) throw new Error("The observer did not report the pushes as delivered.");
  }
  releaseMemory(memory, true);
  return samples;
}

interface Message {
  readonly role: string;
  readonly content: unknown;
}

/** Alternating user, assistant and tool result messages, with the pushes last. */
function conversation(contents: readonly string[]): Message[] {
  const system = { role: "system", content: "You are helpful." };
  const talk = Array.from({ length: contextMessages - contents.length - 1 }, (_, i): Message => {
    const text = `${i} ${"some text of a long conversation ".repeat(30 + (i % 90))}`;
    if (i % 3 === 0) return { role: "user", content: text };
    return { role: i % 3 === 1 ? "assistant" : "toolResult", content: [{ type: "text", text }] };
  });
  const pushed = contents.map((content, n) => ({
    role: "custom",
    customType: "bench",
    content,
    display: true,
    details: { [DELIVERY_MARK]: { deliveryId: `d${n}` } },
  }));
  return [system, ...talk, ...pushed];
}
