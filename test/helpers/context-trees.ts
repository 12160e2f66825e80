import type { ContextItem, ContextTarget } from "../../context/document/document.ts";
import { Random } from "../soak/random.ts";

// Random documents: conversations as trees, with every flaw that trees of other programs have. The same seed always
// gives the same document.

export interface MadeTree {
  /** As parsed JSON that was not validated yet. */
  readonly document: {
    readonly format: string;
    readonly version: number;
    readonly nodes: readonly RawNode[];
    leafId: string;
  };
  /** The node to select. */
  readonly nodeId: string;
  readonly target: ContextTarget;
}

export interface TreeOptions {
  /** The probability of a flaw, from 0 to 1. Default 0.08. */
  readonly flaws?: number;
  /** The target; by default one of four, at random. */
  readonly target?: ContextTarget;
  /** Turns at most. Default 5. */
  readonly turns?: number;
}

export type RawNode = Record<string, unknown> & { readonly id: string };

const contextTargets: readonly ContextTarget[] = [
  { api: "anthropic-messages", provider: "anthropic", id: "claude", takesImages: true },
  { api: "openai-completions", provider: "openai", id: "gpt", takesImages: false },
  { api: "openai-responses", provider: "openai", id: "gpt", takesImages: true },
  { api: "google-generative-ai", provider: "google", id: "gemini-flash", takesImages: true },
];

const onePixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const words = [
  "fix",
  "the",
  "parser",
  "für",
  "日本語",
  "🙂",
  "{}",
  "a\nb",
  "  ",
  "\ud800",
  "\udc00x",
  "ls -la",
] as const;
const goodWords = words.slice(0, 7);

/** A tree of a conversation as agents write it: parallel calls, abandoned answers, events, results in any order. */
export function makeTree(seed: number, options: TreeOptions = {}): MadeTree {
  return new TreeMaker(new Random(seed), options).make();
}

/** Results that belong to the calls of others, by their marks. */
export function swapped(items: readonly ContextItem[]): string[] {
  const calls = new Map(
    items.flatMap(({ toolCalls = [] }) => toolCalls.map((call) => [call.id, call.arguments] as const)),
  );
  return items.flatMap(({ toolCallId = "", details }) => {
    const { mark } = (details ?? {}) as { readonly mark?: unknown };
    const expected = calls.get(toolCallId)?.["mark"];
    return mark === undefined || mark === expected ? [] : [`the result of ${String(mark)} is for ${String(expected)}`];
  });
}

class TreeMaker {
  readonly #random: Random;
  readonly #flaws: number;
  readonly #turns: number;
  readonly #target: ContextTarget;
  readonly #nodes: RawNode[] = [];
  /** Nodes in random order; their times are then all different. */
  readonly #isShuffled: boolean;
  #time = 1_700_000_000_000;
  #calls = 0;
  #items = 0;

  constructor(random: Random, { flaws = 0.08, target, turns = 5 }: TreeOptions) {
    this.#random = random;
    this.#flaws = flaws;
    this.#turns = turns;
    this.#isShuffled = random.chance(0.2);
    this.#target = target ?? random.pick(contextTargets);
  }

  make(): MadeTree {
    const random = this.#random;
    let tip: string | null = null;
    if (random.chance(0.4)) tip = this.#node(tip, { role: "system", content: this.#content() });
    if (this.#fails()) tip = this.#assistant(tip);
    const turns = random.integer(1, this.#turns);
    for (let turn = 0; turn < turns; turn += 1) tip = this.#turn(tip);
    if (this.#fails() || tip === null) tip = this.#unfinished(tip);
    const nodes = this.#isShuffled ? random.shuffled(this.#nodes) : this.#nodes;
    const document = { format: "pi-rpcd/context", version: 1, leafId: tip, nodes };
    return { document, nodeId: random.chance(0.1) ? random.pick(this.#nodes).id : tip, target: this.#target };
  }

  #fails(): boolean {
    return this.#random.chance(this.#flaws);
  }

  /** A user's message, calls with their results, and the answer. Returns the last node of the path. */
  #turn(parent: string | null): string {
    const random = this.#random;
    const user = this.#node(parent, { role: "user", content: this.#content(true) });
    let tip = user;
    if (random.chance(0.15)) tip = this.#event(tip);
    for (let abandoned = random.chance(0.2) ? random.integer(1, 2) : 0; abandoned > 0; abandoned -= 1) {
      this.#tools(tip);
      this.#assistant(tip);
    }
    for (let steps = random.integer(0, 2); steps > 0; steps -= 1) {
      const style = random.integer(0, 2);
      // Off the path, on the path, or in the message itself.
      if (style === 0) this.#tools(tip);
      else if (style === 1) tip = this.#tools(tip);
      else tip = this.#fails() ? this.#namelessStep(tip) : this.#nativeStep(tip);
    }
    tip = this.#assistant(tip);
    return random.chance(0.15) ? this.#event(tip) : tip;
  }

  #unfinished(parent: string | null): string {
    const user = this.#node(parent, { role: "user", content: this.#content(true) });
    return this.#random.chance(0.5) ? this.#tools(user) : user;
  }

  /** Parallel calls and their results below a node, as a chain or as siblings. Returns the last of the chain. */
  #tools(parent: string): string {
    const random = this.#random;
    const isChain = random.chance(0.5);
    const calls: { node: string; id: string; name: string }[] = [];
    let tip = parent;
    for (let count = random.integer(1, 3); count > 0; count -= 1) {
      const id = this.#callId(false);
      const name = this.#toolName();
      const fields = { ...(random.chance(0.9) ? { toolCallId: id } : {}), ...this.#argumentField(), toolName: name };
      const node = this.#node(isChain ? tip : parent, { role: random.pick(["toolCall", "tool_call"]), ...fields });
      calls.push({ node, id: "toolCallId" in fields ? id : node, name });
      tip = node;
    }
    for (const call of random.chance(0.3) ? random.shuffled(calls) : calls) {
      if (this.#fails()) continue;
      const result = this.#result(isChain ? tip : call.node, call.id, call.name, !isChain);
      if (isChain) tip = result;
      if (this.#fails()) this.#result(isChain ? tip : call.node, call.id, call.name);
    }
    if (this.#fails()) this.#result(tip, "nobody", "bash");
    return isChain ? tip : parent;
  }

  /** `isBelow`: the parent already identifies the call. */
  #result(parent: string, id: string, name: string, isBelow = false): string {
    const random = this.#random;
    const whole = this.#content();
    return this.#node(parent, {
      role: random.pick(["toolResult", "tool_result", "tool"]),
      ...(!isBelow || random.chance(0.7) || this.#fails() ? { toolCallId: id } : {}),
      ...(random.chance(0.8) ? { toolName: name } : {}),
      ...(random.chance(0.2) ? { result: whole, content: "cut" } : { content: whole }),
      ...(random.chance(0.3) ? { isError: random.chance(0.5) } : {}),
    });
  }

  /** An assistant with calls in the message, followed by the results. */
  #nativeStep(parent: string): string {
    const random = this.#random;
    const isOwn = random.chance(0.5);
    const calls = Array.from({ length: random.integer(1, 3) }, () => ({
      id: this.#callId(isOwn),
      name: isOwn ? random.pick(["bash", "read"]) : this.#toolName(),
      arguments: this.#arguments(),
    }));
    const text = random.chance(0.5) ? [{ type: "text", text: this.#text() }] : [];
    const assistant = this.#node(parent, {
      role: "assistant",
      content: text,
      toolCalls: calls,
      model: isOwn ? this.#ownModel() : this.#otherModel(),
      stopReason: this.#fails() ? random.pick(["error", "aborted", "length"]) : "toolUse",
      ...(isOwn && random.chance(0.5)
        ? { blocks: this.#blocks([...text, ...calls.map((call) => ({ type: "toolCall", ...call }))]) }
        : {}),
    });
    let tip = assistant;
    for (const { id, name } of random.chance(0.3) ? random.shuffled(calls) : calls) {
      if (this.#fails()) continue;
      if (this.#fails()) tip = this.#event(tip);
      const result = this.#result(random.chance(0.2) ? assistant : tip, id, name);
      tip = random.chance(0.9) ? result : tip;
    }
    return tip;
  }

  /** Calls without ids, and results that only name their tools. Marks tell which result belongs to which call. */
  #namelessStep(parent: string): string {
    const random = this.#random;
    const names = random.shuffled(["bash", "read", "edit"]).slice(0, random.integer(1, 3));
    const mark = `m${this.#nodes.length}`;
    const toolCalls = names.map((name) => ({ name, arguments: { ...this.#arguments(), mark: `${mark} ${name}` } }));
    let tip = this.#node(parent, { role: "assistant", content: "", toolCalls, stopReason: "toolUse" });
    for (const toolName of random.shuffled(names)) {
      const details = { mark: `${mark} ${toolName}` };
      const id = random.chance(0.3) ? { toolCallId: "" } : {};
      tip = this.#node(tip, { role: "toolResult", toolName, ...id, content: this.#content(), details });
    }
    return tip;
  }

  /** As pi stores them, with the service's signatures: items of OpenAI Responses, each with an id of its own. */
  #blocks(said: readonly Readonly<Record<string, unknown>>[]): readonly Readonly<Record<string, unknown>>[] {
    const signed = said.map((block) =>
      block["type"] === "text" && this.#random.chance(0.7)
        ? {
            ...block,
            textSignature: this.#random.pick([JSON.stringify({ v: 1, id: this.#itemId("msg") }), "msg_pi_1"]),
          }
        : block,
    );
    if (this.#random.chance(0.5)) return signed;
    const thinking = { type: "thinking", thinking: "Hm.", thinkingSignature: this.#signature("Hm.") };
    return this.#fails() ? [...signed, thinking] : [thinking, ...signed];
  }

  /** As pi stores it: the service's own; for chat completions the name of the reasoning field. */
  #signature(text: string): string {
    const { api } = this.#target;
    if (api === "openai-completions") return "reasoning_content";
    if (api !== "openai-responses") return "c2ln";
    return JSON.stringify({ type: "reasoning", id: this.#itemId("rs"), summary: [{ type: "summary_text", text }] });
  }

  /** Sometimes an existing one. */
  #itemId(kind: string): string {
    if (!this.#fails()) this.#items += 1;
    return `${kind}_${this.#items}`;
  }

  #assistant(parent: string | null): string {
    const random = this.#random;
    const isOwn = random.chance(0.5);
    const reasoning = {
      type: "reasoning",
      text: "Let me see.",
      ...(isOwn ? { signature: this.#signature("Let me see.") } : {}),
    };
    const text = { type: "text", text: this.#text() };
    return this.#node(parent, {
      role: "assistant",
      content: this.#fails() ? this.#content() : random.chance(0.3) ? [reasoning, text] : [text],
      ...(random.chance(0.8) ? { model: isOwn ? this.#ownModel() : this.#otherModel() } : {}),
      ...(random.chance(0.8) ? { stopReason: this.#fails() ? "aborted" : "stop" } : {}),
      ...(random.chance(0.3) ? { usage: { input: 10, output: 20 } } : {}),
    });
  }

  #event(parent: string): string {
    return this.#node(parent, {
      role: "event",
      eventType: this.#random.pick(["git.push", "ci", "a b"]),
      content: this.#content(),
      meta: { ref: "main" },
    });
  }

  #node(parentId: string | null, fields: Readonly<Record<string, unknown>>): string {
    const random = this.#random;
    const id = `n${this.#nodes.length}`;
    this.#time += random.integer(this.#isShuffled ? 1 : 0, 3);
    const timestamp = this.#fails() ? random.pick(["now", null, 1e308]) : this.#time;
    const extra = random.chance(0.1) ? { label: "kept" } : {};
    this.#nodes.push({ id, parentId, ...fields, ...(timestamp === null ? {} : { timestamp }), ...extra });
    return id;
  }

  #content(isUser = false): unknown {
    const random = this.#random;
    if (this.#fails()) return random.pick([null, "", [], [null], ["plain"], [{ type: "text", text: " " }]]);
    if (random.chance(0.5)) return this.#text();
    const parts: unknown[] = [{ type: "text", text: this.#text() }];
    if (isUser && random.chance(0.2)) parts.push({ type: "image", data: onePixel, mimeType: "image/png" });
    return parts;
  }

  #text(): string {
    const random = this.#random;
    const pool = this.#fails() ? words : goodWords;
    return Array.from({ length: random.integer(1, 6) }, () => random.pick(pool)).join(" ");
  }

  #callId(isOwn: boolean): string {
    const random = this.#random;
    const last = this.#calls;
    if (!(last > 0 && this.#fails())) this.#calls += 1;
    const id = `call_${this.#calls}`;
    if (isOwn) return this.#target.api === "openai-responses" ? `${id}|${this.#itemId("fc")}` : id;
    if (!this.#fails()) return id;
    // Equal up to where some services cut them, and except for what others take off the end.
    const alike = [`${"y".repeat(40)}${id}`, `${"x".repeat(450)}${id}`, `${id}_`, "_"];
    return random.pick([`${id}|fc_${last}`, `${id} x`, `${id}${"y".repeat(450)}`, "", "__proto__", `é${id}`, ...alike]);
  }

  #toolName(): string {
    if (!this.#fails()) return this.#random.pick(["bash", "read", "edit"]);
    return this.#random.pick(["", "a b", "mcp.server/tool", "z".repeat(80), "constructor", "7zip", "-x"]);
  }

  #argumentField(): Record<string, unknown> {
    const name = this.#random.pick(["arguments", "toolParams", "params", "input"]);
    return this.#random.chance(0.95) ? { [name]: this.#arguments() } : {};
  }

  #arguments(): Record<string, unknown> {
    return { command: this.#text(), nested: { list: [1, null, this.#text()] } };
  }

  #ownModel(): Record<string, string> {
    const { api, provider, id } = this.#target;
    return { api, provider, id };
  }

  #otherModel(): Record<string, string> {
    return { api: "google-generative-ai", provider: "google", id: "gemini" };
  }
}
