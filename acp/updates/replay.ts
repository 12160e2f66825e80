import type { SessionUpdate, ToolCall } from "@agentclientprotocol/sdk";
import type { By } from "../../protocol/client-identity.ts";
import { defined } from "../../protocol/objects.ts";
import { branchTo, messageOf, type PiEntry, resultsOf, type ToolCallBlock, toolCallIn, toolCallsOf } from "./branch.ts";
import { branchSummary, CompactionUpdates } from "./compactions.ts";
import {
  answerChunk,
  customChunks,
  failureChunk,
  firstWords,
  messageIdOf,
  type PiMessage,
  type TextKind,
  textIn,
  userChunks,
} from "./messages.ts";
import type { ToolPlace } from "./paths.ts";
import { rawValue, wordOf } from "./raw-value.ts";
import { fenced, firstLine } from "./text.ts";
import { customKey, type Entries, type Told, type ToldTool, ToolCallIds } from "./told.ts";
import { resultFields } from "./tool-results.ts";
import { describeTool } from "./tools.ts";
import { UsageTally } from "./usage.ts";

export interface ReplayOptions {
  readonly place: ToolPlace;
  /** Whether the client has the capability `session.compaction`. */
  readonly compaction: boolean;
  /** Whether a run is on: then the last answer's tool calls without a result can still get one. */
  readonly isRunning: boolean;
  /** The size of the model's context window in tokens. */
  readonly contextSize?: number | undefined;
  /** The client that sent the message of an entry. Undefined: no client did, or it is unknown. */
  readonly by?: (entry: PiEntry) => By | undefined;
}

/** Tells the active branch of a session: also what a compaction has taken out of the model's context. */
export class Replay {
  readonly #options: ReplayOptions;
  readonly #entries: readonly PiEntry[];
  readonly #branch: readonly PiEntry[];
  readonly #results: ReturnType<typeof resultsOf>;
  readonly #compactions: CompactionUpdates;
  /** The answer whose tool calls can still get results. */
  readonly #last: PiMessage | undefined;
  readonly #messages = new Set<string>();
  readonly #customs: { readonly key: string; readonly atMs: number }[] = [];
  readonly #endedTools = new Set<string>();
  readonly #openTools = new Map<string, ToldTool>();
  readonly #compactionTimes: number[] = [];
  readonly #ids = new ToolCallIds();
  readonly #title: string | undefined;
  readonly #usage = new UsageTally();

  constructor({ entries, leafId }: Entries, options: ReplayOptions) {
    this.#options = options;
    this.#entries = entries;
    this.#branch = branchTo(entries, leafId);
    this.#results = resultsOf(this.#branch);
    this.#compactions = new CompactionUpdates(options.compaction);
    this.#title = titleOf(entries, this.#branch);
    // pi takes in a user's message when all tools of the answer before it have ended.
    const last = this.#branch
      .map(messageOf)
      .findLast((message) => /^(assistant|user)$/.test(wordOf(message?.["role"])));
    this.#last = last?.["role"] === "assistant" ? last : undefined;
  }

  /** What has been told. It is complete when {@link updates} has ended. */
  get told(): Told {
    return {
      messages: this.#messages,
      customs: this.#customs,
      endedTools: this.#endedTools,
      openTools: this.#openTools,
      compactions: this.#compactionTimes,
      ids: this.#ids,
      usage: this.#usage,
      title: this.#title,
      lastAtMs: timeOf(this.#entries.at(-1) ?? {}),
    };
  }

  /** The updates in their order, each made when it is asked for. To be called once. */
  *updates(): Generator<SessionUpdate, void> {
    const updatedAt = this.#entries.at(-1)?.["timestamp"];
    const info = { title: this.#title, updatedAt: typeof updatedAt === "string" ? updatedAt : undefined };
    if (Object.keys(defined(info)).length > 0) yield { sessionUpdate: "session_info_update", ...defined(info) };
    for (const entry of this.#branch) yield* this.#entry(entry);
    this.#addOtherBranches();
    const usage = this.#usage.update(this.#options.contextSize);
    if (usage !== undefined) yield usage;
  }

  *#entry(entry: PiEntry): Generator<SessionUpdate, void> {
    const { type, id, summary, usage } = entry;
    const message = messageOf(entry);
    const words = typeof summary === "string" ? summary : "";
    if (message !== undefined) yield* this.#message(message, entry);
    else if (type === "custom_message") yield* this.#custom(entry);
    else if (type === "compaction") {
      this.#usage.compacted(usage);
      this.#compactionTimes.push(timeOf(entry));
      yield this.#compactions.whole(`compaction-${wordOf(id)}`, { kind: "completed", summary: words });
    } else if (type === "branch_summary") {
      this.#usage.add(usage);
      yield branchSummary(`branch-${wordOf(id)}`, words);
    } else if (type === "usage") this.#usage.add(usage);
  }

  *#message(message: PiMessage, entry: PiEntry): Generator<SessionUpdate, void> {
    this.#messages.add(messageIdOf(message));
    switch (message["role"]) {
      case "user":
        yield* userChunks(message, { by: this.#options.by?.(entry) });
        return;
      case "assistant":
        this.#usage.answered(message);
        yield* this.#answer(message);
        return;
      case "toolResult":
        this.#usage.add(message["usage"]);
        return;
      case "custom":
        yield* customChunks(message);
        return;
      case "bashExecution":
        yield shellCommand(message);
        return;
      default:
    }
  }

  *#answer(message: PiMessage): Generator<SessionUpdate, void> {
    const messageId = messageIdOf(message);
    const calls = new Map(toolCallsOf(message).map((call) => [call.id, call]));
    let said: { kind: TextKind; text: string } | undefined;
    for (const block of Array.isArray(message["content"]) ? message["content"] : []) {
      const text = textIn(block);
      const call = toolCallIn(block);
      if (text !== undefined && text.kind === said?.kind) said.text += text.text;
      else if (text !== undefined || call !== undefined) {
        if (said !== undefined) yield answerChunk(said.kind, said.text, messageId);
        said = text;
      }
      if (call !== undefined && calls.delete(call.id)) yield this.#tool(call, message);
    }
    if (said !== undefined) yield answerChunk(said.kind, said.text, messageId);
    const failure = failureChunk(message);
    if (failure !== undefined) yield failure;
  }

  #tool(call: ToolCallBlock, caller: PiMessage): SessionUpdate {
    const { place } = this.#options;
    const toolCallId = this.#ids.next(call.id);
    const rawInput = rawValue(call.args);
    const tool = {
      sessionUpdate: "tool_call" as const,
      toolCallId,
      name: call.name,
      ...describeTool(call, place),
      ...(rawInput !== undefined && { rawInput }),
    };
    const result = this.#results.get(caller)?.get(call.id);
    this.#endedTools.delete(call.id);
    if (result !== undefined) {
      this.#endedTools.add(call.id);
      const { content, details, isError } = result;
      return { ...tool, ...present(resultFields(call, { content, details, isError: isError === true }, { place })) };
    }
    const hasFailed = caller !== this.#last || !this.#options.isRunning;
    if (caller === this.#last) {
      const { name, args } = call;
      this.#openTools.set(call.id, { name, args, toolCallId, answerId: messageIdOf(caller), hasFailed });
    }
    if (hasFailed) this.#endedTools.add(call.id);
    return { ...tool, status: hasFailed ? "failed" : "pending" };
  }

  *#custom(entry: PiEntry): Generator<SessionUpdate, void> {
    const atMs = timeOf(entry);
    this.#customs.push({ key: customKey(entry), atMs });
    yield* customChunks({ ...entry, timestamp: atMs }, this.#options.by?.(entry));
  }

  /** pi's costs are those of the whole file. The size of the context is that of the active branch. */
  #addOtherBranches(): void {
    const told = new Set(this.#branch);
    for (const entry of this.#entries) {
      if (!told.has(entry)) this.#usage.add(entry["usage"] ?? messageOf(entry)?.["usage"]);
    }
  }
}

function shellCommand({ command, output, exitCode, cancelled, timestamp }: PiMessage): SessionUpdate {
  const line = typeof command === "string" ? command : "";
  const hasFailed = cancelled === true || (typeof exitCode === "number" && exitCode !== 0);
  const text = typeof output === "string" && output !== "" ? fenced(output) : undefined;
  return {
    sessionUpdate: "tool_call",
    toolCallId: `bash-${wordOf(timestamp)}`,
    title: firstLine(line, 200) || "bash",
    kind: "execute",
    status: hasFailed ? "failed" : "completed",
    rawInput: { command: line },
    ...(text !== undefined && { content: [{ type: "content", content: { type: "text", text } }] }),
    ...(typeof exitCode === "number" && { _meta: { "pi-rpcd": { exitCode } } }),
  };
}

/** The name, else the first words. The last name in the file counts, as in pi. */
function titleOf(entries: readonly PiEntry[], branch: readonly PiEntry[]): string | undefined {
  const name = entries.findLast(({ type }) => type === "session_info")?.["name"];
  if (typeof name === "string" && name !== "") return name;
  const first = branch.map(messageOf).find((message) => message?.["role"] === "user");
  return first === undefined ? undefined : firstWords(first);
}

function timeOf({ timestamp }: PiEntry): number {
  return typeof timestamp === "string" ? Date.parse(timestamp) : Number.NaN;
}

function present(fields: ReturnType<typeof resultFields>): Partial<ToolCall> {
  const { locations, ...others } = fields;
  return { ...others, ...(locations && { locations }) };
}
