import type { SessionUpdate, ToolCall } from "@agentclientprotocol/sdk";
import type { By } from "../../protocol/client-identity.ts";
import { defined } from "../../protocol/objects.ts";
import { messageOf, type PiEntry, type ToolCallBlock, toolCallIn, toolCallsOf } from "./branch.ts";
import { branchSummary, CompactionUpdates } from "./compactions.ts";
import {
  answerChunk,
  customChunks,
  failureChunk,
  messageIdOf,
  type PiMessage,
  type TextKind,
  textIn,
  userChunks,
} from "./messages.ts";
import type { ToolPlace } from "./paths.ts";
import { rawValue, wordOf } from "./raw-value.ts";
import { fenced, firstLine } from "./text.ts";
import { customKey, type Told, type ToldTool, ToolCallIds } from "./told.ts";
import { resultFields } from "./tool-results.ts";
import { describeTool } from "./tools.ts";
import { UsageTally } from "./usage.ts";

export interface ReplayOptions {
  readonly place: ToolPlace;
  /** Whether the client has the capability `session.compaction`. */
  readonly compaction: boolean;
  /** Whether a run is on: then the last answer's tool calls without a result can still get one. */
  readonly isRunning: boolean;
  /** The last message of a user or the model. */
  readonly lastTurn?: PiMessage | undefined;
  readonly title?: string | undefined;
  /** The last entry. */
  readonly newest?: PiEntry | undefined;
  /** The size of the model's context window in tokens. */
  readonly contextSize?: number | undefined;
  /** The client that sent the message of an entry. Undefined: no client did, or it is unknown. */
  readonly by?: (entry: PiEntry) => By | undefined;
}

/** An answer whose tool calls wait for their results. */
interface Waiting {
  readonly callIds: ReadonlySet<string>;
  readonly results: Map<string, PiMessage>;
  readonly updates: Generator<SessionUpdate | "waits", void>;
  /** What comes after the answer. */
  readonly later: PiEntry[];
}

/** So many entries wait for the results of an answer before them. */
const maxLater = 100;

/**
 * Tells the active branch of a session, entry by entry from its beginning: also what a compaction has taken out of the model's
 * context. A tool call is told with its result, which is in a later entry.
 */
export class Replay {
  readonly #options: ReplayOptions;
  readonly #compactions: CompactionUpdates;
  /** {@link messageIdOf} of the answer whose tool calls can still get results. */
  readonly #last: string | undefined;
  #waiting: Waiting | undefined;
  /** Whether no further results come for the answer that waits. */
  #isOver = false;
  readonly #messages = new Set<string>();
  readonly #customs: { readonly key: string; readonly atMs: number }[] = [];
  readonly #endedTools = new Set<string>();
  readonly #openTools = new Map<string, ToldTool>();
  readonly #compactionTimes: number[] = [];
  readonly #ids = new ToolCallIds();
  readonly #usage = new UsageTally();

  constructor(options: ReplayOptions) {
    const { lastTurn, compaction } = options;
    this.#options = options;
    this.#compactions = new CompactionUpdates(compaction);
    // pi takes in a user's message when all tools of the answer before it have ended.
    this.#last = lastTurn?.["role"] === "assistant" ? messageIdOf(lastTurn) : undefined;
  }

  /** What has been told. It is complete after {@link end}. */
  get told(): Told {
    const { title, newest = {} } = this.#options;
    return {
      messages: this.#messages,
      customs: this.#customs,
      endedTools: this.#endedTools,
      openTools: this.#openTools,
      compactions: this.#compactionTimes,
      ids: this.#ids,
      usage: this.#usage,
      title,
      lastAtMs: timeOf(newest),
    };
  }

  /** What comes before the entries. */
  *begin(): Generator<SessionUpdate, void> {
    const { title, newest } = this.#options;
    const updatedAt = newest?.["timestamp"];
    const info = defined({ title, updatedAt: typeof updatedAt === "string" ? updatedAt : undefined });
    if (Object.keys(info).length > 0) yield { sessionUpdate: "session_info_update", ...info };
  }

  /** The next entry. Each update is made when it is asked for. */
  *entry(entry: PiEntry): Generator<SessionUpdate, void> {
    const message = messageOf(entry);
    const role = message?.["role"];
    const waiting = this.#waiting;
    if (waiting === undefined) yield* this.#entry(entry);
    else if (message !== undefined && role === "toolResult" && isResultOf(message, waiting)) {
      waiting.results.set(wordOf(message["toolCallId"]), message);
      waiting.later.push(entry);
      yield* this.#goOn();
    } else {
      waiting.later.push(entry);
      if (role !== "user" && role !== "assistant" && waiting.later.length <= maxLater) return;
      this.#isOver = true;
      yield* this.#goOn();
    }
  }

  /** What comes after the entries. `cost`: US dollars of the whole session. Default: of the branch. */
  *end(cost?: number): Generator<SessionUpdate, void> {
    while (this.#waiting !== undefined) {
      this.#isOver = true;
      yield* this.#goOn();
    }
    if (cost !== undefined) this.#usage.costs(cost);
    const usage = this.#usage.update(this.#options.contextSize);
    if (usage !== undefined) yield usage;
  }

  /** Tells the answer that waits as far as it goes, and then what comes after it. */
  *#goOn(): Generator<SessionUpdate, void> {
    const waiting = this.#waiting;
    if (waiting === undefined) return;
    for (let next = waiting.updates.next(); next.done !== true; next = waiting.updates.next()) {
      if (next.value === "waits") return;
      yield next.value;
    }
    this.#waiting = undefined;
    this.#isOver = false;
    for (const entry of waiting.later) yield* this.entry(entry);
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
        yield* this.#wait(message);
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

  *#wait(message: PiMessage): Generator<SessionUpdate, void> {
    const results = new Map<string, PiMessage>();
    const callIds = new Set(toolCallsOf(message).map(({ id }) => id));
    this.#waiting = { callIds, results, updates: this.#answer(message, results), later: [] };
    yield* this.#goOn();
  }

  /** The parts of an answer. `waits`: the next one is a tool call, whose result is to be added to the results. */
  *#answer(message: PiMessage, results: ReadonlyMap<string, PiMessage>): Generator<SessionUpdate | "waits", void> {
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
      if (call === undefined || !calls.delete(call.id)) continue;
      while (!results.has(call.id) && !this.#isOver) yield "waits";
      yield this.#tool(call, message, results.get(call.id));
    }
    if (said !== undefined) yield answerChunk(said.kind, said.text, messageId);
    const failure = failureChunk(message);
    if (failure !== undefined) yield failure;
  }

  #tool(call: ToolCallBlock, caller: PiMessage, result: PiMessage | undefined): SessionUpdate {
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
    this.#endedTools.delete(call.id);
    if (result !== undefined) {
      this.#endedTools.add(call.id);
      const { content, details, isError } = result;
      return { ...tool, ...present(resultFields(call, { content, details, isError: isError === true }, { place })) };
    }
    const answerId = messageIdOf(caller);
    const hasFailed = answerId !== this.#last || !this.#options.isRunning;
    if (answerId === this.#last) {
      this.#openTools.set(call.id, { name: call.name, args: call.args, toolCallId, answerId, hasFailed });
    }
    if (hasFailed) this.#endedTools.add(call.id);
    return { ...tool, status: hasFailed ? "failed" : "pending" };
  }

  *#custom(entry: PiEntry): Generator<SessionUpdate, void> {
    const atMs = timeOf(entry);
    this.#customs.push({ key: customKey(entry), atMs });
    yield* customChunks({ ...entry, timestamp: atMs }, this.#options.by?.(entry));
  }
}

/** Whether a result belongs to a call of an answer. The first result counts. */
function isResultOf({ toolCallId }: PiMessage, { callIds, results }: Waiting): boolean {
  return typeof toolCallId === "string" && callIds.has(toolCallId) && !results.has(toolCallId);
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

function timeOf({ timestamp }: PiEntry): number {
  return typeof timestamp === "string" ? Date.parse(timestamp) : Number.NaN;
}

function present(fields: ReturnType<typeof resultFields>): Partial<ToolCall> {
  const { locations, ...others } = fields;
  return { ...others, ...(locations && { locations }) };
}
