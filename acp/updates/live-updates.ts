import { randomUUID } from "node:crypto";
import type { SessionUpdate } from "@agentclientprotocol/sdk";
import type { By } from "../../protocol/client-identity.ts";
import type { NotificationParams } from "../../protocol/notifications.ts";
import { isRecord } from "../../protocol/objects.ts";
import { messageOf, type PiEntry, type ToolCallBlock, toolCallIn, toolCallsOf } from "./branch.ts";
import { branchSummary, CompactionUpdates } from "./compactions.ts";
import { LiveCompactions } from "./live-compactions.ts";
import { LiveTools } from "./live-tools.ts";
import {
  answerChunk,
  customChunks,
  failureChunk,
  firstWords,
  messageIdOf,
  type Notice,
  noticeUpdate,
  type PiMessage,
  userChunks,
} from "./messages.ts";
import type { ToolPlace } from "./paths.ts";
import { wordOf } from "./raw-value.ts";
import { StreamedAnswer } from "./streamed-answer.ts";
import { customKey, type Told } from "./told.ts";
import { UsageTally } from "./usage.ts";

/** What the client can show, from its capabilities. */
export interface ClientFeatures {
  /** `session.notices`. */
  readonly notices: boolean;
  /** `session.compaction`. */
  readonly compaction: boolean;
  /** `_meta.terminal_output`. */
  readonly terminals: boolean;
}

export interface LiveUpdatesOptions {
  readonly place: ToolPlace;
  readonly client: ClientFeatures;
  /** `block`: which of an answer's blocks a text is of. */
  readonly send: (update: SessionUpdate, block?: number) => void;
  /** The size of the model's context window in tokens. Undefined: it is not known now. */
  readonly contextSize: () => number | undefined;
  /** What a replay has told: its events are left out. Its usage and title are continued. */
  readonly told?: Told | undefined;
  /** Without `told`: the session's cost until now, in US dollars. Default: 0. */
  readonly cost?: number | undefined;
  /** Without `told`: the title that the client knows. Default: the first message becomes the title. */
  readonly title?: string | undefined;
}

type PiEvent = Readonly<Record<string, unknown>>;

/** What the daemon says of an event. */
export interface EventFacts {
  /** The client that sent the event's message. */
  readonly by?: By | undefined;
  /** The generation of the pi that reported it. Default: the newest one. */
  readonly generation?: number;
}

/** So many of extensions' messages are remembered up to the next message of the session. */
const maxKeptKeys = 100;

/** What tells the entries that are missing in the events. */
export interface TellMissed {
  /** Tells a user's message. */
  user(message: PiMessage, entry: PiEntry): void;
  /** The client that sent the message of an entry. Undefined: no client did, or it is unknown. */
  by(entry: PiEntry): By | undefined;
}

interface Answer {
  readonly messageId: string;
  readonly text: StreamedAnswer;
  /** pi's ids of its tool calls by the index of their blocks. */
  readonly calls: Map<number, string>;
}

/**
 * Translates pi's events of one session (docs/json.md of pi) to updates of the client, as they come. Nothing in the events
 * is trusted: extensions and models make parts of them.
 */
export class LiveUpdates {
  readonly #options: LiveUpdatesOptions;
  readonly #tools: LiveTools;
  readonly #compactions: LiveCompactions;
  readonly #usage: UsageTally;
  /** Extensions' messages that a replay has told and whose events have not come yet. */
  readonly #customs: { readonly key: string; readonly atMs: number }[];
  /** The last message whose end came. */
  #last: string | undefined;
  /** Whether the client was told everything from the session's beginning. */
  readonly #isWhole: boolean;
  /** The extensions' messages that came after it. */
  readonly #customsSinceLast: string[] = [];
  /** The messages that entries have told, by a replay or by {@link missed}, with their places among these. */
  readonly #order: Map<string, number>;
  /** The clock time of the last entry that was told. */
  #lastAtMs: number;
  /** The same of {@link missed} alone. */
  #missedUntilMs = Number.NEGATIVE_INFINITY;
  #title: string | undefined;
  /** `told`: the events until its end belong to a message that a replay has told. */
  #answer: Answer | "told" | undefined;
  /** Whether another answer may have begun unseen, so that parts of an answer are not known to belong to this one. */
  #isAdrift = false;
  /** Of the pi whose events come. */
  #generation = 0;
  #newestAtMs = Number.NEGATIVE_INFINITY;
  /** When the last event of the pi before it came. */
  #formerAtMs = Number.NEGATIVE_INFINITY;

  constructor(options: LiveUpdatesOptions) {
    const { place, client, send, told } = options;
    this.#options = options;
    this.#order = new Map(Array.from(told?.messages ?? [], (id, index) => [id, index]));
    const orderOf = (answerId: string): number => this.#order.get(answerId) ?? 0;
    this.#tools = new LiveTools({ place, terminals: client.terminals, told, orderOf, send });
    const compactions = new CompactionUpdates(client.compaction);
    this.#compactions = new LiveCompactions(compactions, told?.compactions ?? [], send);
    this.#usage = told?.usage ?? new UsageTally(options.cost);
    this.#customs = [...(told?.customs ?? [])];
    this.#lastAtMs = told?.lastAtMs ?? Number.NEGATIVE_INFINITY;
    this.#isWhole = told !== undefined || options.title === undefined;
    this.#last = told === undefined ? undefined : Array.from(told.messages).at(-1);
    this.#title = told?.title ?? options.title;
  }

  /** The next event, in pi's order. `at`: the clock time of its envelope, in milliseconds. */
  event(event: PiEvent, at: number = Date.now(), { by, generation = this.#generation }: EventFacts = {}): void {
    if (generation > this.#generation) this.#childChanged(generation);
    this.#newestAtMs = Math.max(this.#newestAtMs, at);
    switch (event["type"]) {
      case "message_start":
        this.#messageStart(event["message"]);
        return;
      case "message_update":
        this.#messageUpdate(event["assistantMessageEvent"]);
        return;
      case "message_end":
        this.#messageEnd(event["message"], at, by);
        return;
      case "tool_execution_start":
      case "tool_execution_update":
      case "tool_execution_end":
        // The entries have told it. Its id could also be that of a later call.
        if (at >= this.#missedUntilMs) this.#execution(event);
        return;
      case "agent_end":
      case "agent_settled":
        this.#tools.failAll(this.#isPast(at));
        return;
      case "compaction_start":
        this.#compactions.started(at);
        return;
      case "compaction_end":
        this.#compacted(event, at);
        return;
      case "auto_retry_start":
      case "summarization_retry_scheduled":
        if (!this.#isPast(at)) this.#retry(event);
        return;
      case "session_info_changed":
        if (!this.#isPast(at)) this.#named(event["name"], at);
        return;
      case "entry_appended":
        if (isRecord(event["entry"])) this.#usage.add(event["entry"]["usage"]);
        return;
      case "rpcd_entry":
        this.#entry(event["entry"], at, by);
        return;
      default:
    }
  }

  /**
   * A user's message that this client did not send, when pi has it (its `message_end`). `by`: the client that did. Nothing
   * is sent if a replay has told it.
   */
  user(message: PiMessage, by?: By): void {
    if (!this.#isTold(message)) for (const chunk of userChunks(message, { by })) this.#options.send(chunk);
  }

  /** A message to the user that is not part of the session. */
  notice(notice: Notice): void {
    const { notices } = this.#options.client;
    this.#options.send(noticeUpdate(notice, { notices, id: `notice-${randomUUID()}` }));
  }

  /** Says which text a running `write` replaces; `null`: the file does not exist yet. */
  formerText(toolCallId: string, text: string | null): void {
    this.#tools.formerText(toolCallId, text);
  }

  /** Events are missing here. `onlyDeltas`: later events have their complete content. */
  lose({ onlyDeltas = false }: { readonly onlyDeltas?: boolean | undefined } = {}): void {
    this.#isAdrift ||= !onlyDeltas;
    if (typeof this.#answer === "object") this.#answer.text.lose();
  }

  /** Whether an entry has the last message whose end came. */
  isLast(entry: PiEntry): boolean {
    const message = messageOf(entry);
    return message !== undefined && messageIdOf(message) === this.#last;
  }

  /** Whether no end of a message came, and the client has everything before. */
  get hasNoLast(): boolean {
    return this.#last === undefined && this.#isWhole;
  }

  /**
   * Where events are missing: returns what tells the entries that pi has written since the last message whose end came. Their
   * events are left out if they come after all.
   */
  missed(tell: TellMissed): (entry: PiEntry) => void {
    const customs = this.#customsSinceLast.splice(0);
    return (entry) => {
      const message = messageOf(entry);
      const custom = entry["type"] === "custom_message" ? customs.indexOf(customKey(entry)) : -1;
      if (message?.["role"] === "user") tell.user(message, entry);
      if (custom !== -1) customs.splice(custom, 1);
      else this.#missedEntry(entry, message, tell.by(entry));
    };
  }

  #missedEntry(entry: PiEntry, message: PiMessage | undefined, by: By | undefined): void {
    const { type, timestamp, summary, usage } = entry;
    const writtenAt = typeof timestamp === "string" ? Date.parse(timestamp) : Number.NaN;
    const at = Number.isNaN(writtenAt) ? Date.now() : writtenAt;
    this.#lastAtMs = Math.max(this.#lastAtMs, at);
    this.#missedUntilMs = this.#lastAtMs;
    if (type !== "compaction") this.#entry(entry, at, by);
    else if (this.#compactions.missed({ summary }, at)) this.#usage.compacted(usage);
    if (message !== undefined) this.#order.set(messageIdOf(message), this.#order.size);
    if (message?.["role"] === "assistant") this.#tools.retold(messageIdOf(message));
    else if (type === "custom_message") this.#customs.push({ key: customKey(entry), atMs: writtenAt });
  }

  /**
   * The daemon reports the end of a run. The first events of the next run may have come before it. pi's own events have
   * ended what was open, unless pi itself has ended.
   */
  runEnded({ outcome, startedAt }: Pick<NotificationParams<"run/ended">, "outcome" | "startedAt">): void {
    if (outcome === "interrupted" && startedAt > this.#formerAtMs) this.abandon();
  }

  /** Nothing that is open goes on: pi has ended, or events are missing. */
  abandon(): void {
    this.#tools.failAll();
    this.#compactions.abandon();
  }

  /** The client's id of the tool call that runs, if it is the only one. */
  get runningTool(): string | undefined {
    return this.#tools.running;
  }

  /** Tells the title and the content of a running tool call again, as a client may have changed them. */
  retellTool(toolCallId: string): void {
    this.#tools.retell(toolCallId);
  }

  /** How many tools run. */
  get runningTools(): number {
    return this.#tools.runningCount;
  }

  /** Clears the timers. Updates that wait for them are dropped. */
  close(): void {
    this.#tools.close();
  }

  #childChanged(generation: number): void {
    if (this.#generation > 0) {
      this.#formerAtMs = this.#newestAtMs;
      this.abandon();
    }
    this.#generation = generation;
  }

  #messageStart(message: unknown): void {
    if (!isRecord(message) || message["role"] !== "assistant") return;
    this.#isAdrift = false;
    this.#answer = this.#isTold(message) ? this.#skip(message) : this.#begin(messageIdOf(message));
  }

  #skip(message: PiMessage): "told" {
    this.#tools.nextAnswer(messageIdOf(message));
    return "told";
  }

  #begin(messageId: string): Answer {
    this.#tools.nextAnswer();
    const text = new StreamedAnswer((kind, part, index) =>
      this.#options.send(answerChunk(kind, part, messageId), index),
    );
    return { messageId, text, calls: new Map() };
  }

  #messageUpdate(step: unknown): void {
    const answer = this.#answer;
    if (typeof answer !== "object" || this.#isAdrift || !isRecord(step)) return;
    const [kind, part] = wordOf(step["type"]).split("_");
    const index = step["contentIndex"];
    if (typeof index !== "number") return;
    if (kind === "toolcall") this.#toolStep(answer, index, step);
    else if (kind === "text" || kind === "thinking") {
      const { delta, content } = step;
      if (part === "start") answer.text.started(index, kind);
      else if (part === "delta" && typeof delta === "string") answer.text.delta(index, kind, delta);
      else if (part === "end" && typeof content === "string") answer.text.ended(index, kind, content);
    }
  }

  #toolStep(answer: Answer, index: number, { type, id, toolName, delta, toolCall }: PiEvent): void {
    if (type === "toolcall_start" && typeof id === "string") {
      answer.text.started(index, "tool");
      answer.calls.set(index, id);
      this.#tools.started(id, wordOf(toolName));
    } else if (type === "toolcall_delta" && typeof delta === "string") {
      const call = answer.calls.get(index);
      if (call !== undefined) this.#tools.argumentsDelta(call, delta);
    } else if (type === "toolcall_end") {
      answer.text.ended(index, "tool", "");
      const call = toolCallIn(toolCall);
      if (call !== undefined) this.#called(call);
    }
  }

  #messageEnd(message: unknown, at: number, by: By | undefined): void {
    if (!isRecord(message)) return;
    if (message["role"] !== "custom") {
      this.#last = messageIdOf(message);
      this.#customsSinceLast.length = 0;
    }
    switch (message["role"]) {
      case "user":
        this.#first(message, at);
        return;
      case "assistant":
        this.#answerEnd(message);
        return;
      case "toolResult":
        this.#toolResult(message);
        return;
      case "custom":
        this.#custom(message, message["timestamp"], by);
        return;
      default:
    }
  }

  #answerEnd(message: PiMessage): void {
    const answer = this.#answer;
    const messageId = messageIdOf(message);
    this.#answer = undefined;
    if (this.#isTold(message)) {
      this.#skip(message);
      return;
    }
    // The start of another answer was lost: it is said here as a whole.
    const isThis = typeof answer === "object" && answer.messageId === messageId;
    const { text } = isThis ? answer : this.#begin(messageId);
    const { content } = message;
    const calls = new Map(toolCallsOf(message).map((call) => [call.id, call]));
    for (const [index, part] of (Array.isArray(content) ? content : []).entries()) {
      text.finished(index, part);
      const call = calls.get(toolCallIn(part)?.id ?? "");
      if (call !== undefined && calls.delete(call.id)) this.#called(call);
    }
    const failure = failureChunk(message);
    if (failure !== undefined) this.#options.send(failure);
    this.#usage.answered(message);
    this.#sendUsage();
  }

  #called({ id, name, args }: ToolCallBlock): void {
    this.#tools.called(id, name, args);
  }

  #execution({
    type,
    toolCallId: id,
    toolName,
    args,
    result,
    partialResult,
    isError,
    parentToolCallId,
  }: PiEvent): void {
    // A call that a tool's script makes (pi 1.0 and later) is not in the session's file, so a replay could not tell it.
    if (typeof id !== "string" || parentToolCallId !== undefined) return;
    const name = wordOf(toolName);
    if (type === "tool_execution_start") this.#tools.executing(id, name, args);
    else if (type === "tool_execution_update") {
      if (isRecord(partialResult)) this.#tools.progress(id, name, partialResult["content"]);
    } else {
      const { content, details } = isRecord(result) ? result : {};
      this.#tools.ended(id, name, { content, details, isError: isError === true });
    }
  }

  /** Ends a tool call whose `tool_execution_end` was lost. */
  #toolResult(message: PiMessage): void {
    const { toolCallId: id, toolName, content, details, isError, usage } = message;
    if (this.#isTold(message)) return;
    this.#usage.add(usage);
    if (typeof id === "string") {
      this.#tools.ended(id, wordOf(toolName), { content, details, isError: isError === true });
    }
  }

  /** `sentAt`: an entry of this content that is not older is the same message. */
  #custom(message: PiMessage, sentAt: unknown, by: By | undefined): void {
    const key = customKey(message);
    const at = this.#customs.findIndex(
      (told) => told.key === key && (typeof sentAt !== "number" || !(told.atMs < sentAt)),
    );
    if (this.#customsSinceLast.push(key) > maxKeptKeys) this.#customsSinceLast.shift();
    if (at !== -1) this.#customs.splice(at, 1);
    else for (const chunk of customChunks(message, by)) this.#options.send(chunk);
  }

  #compacted(event: PiEvent, at: number): void {
    const { result } = event;
    if (!this.#compactions.ended(event, at) || !isRecord(result)) return;
    this.#usage.compacted(result["usage"], result["estimatedTokensAfter"]);
    this.#sendUsage();
  }

  #retry({ attempt, maxAttempts, delayMs, errorMessage }: PiEvent): void {
    const seconds = typeof delayMs === "number" ? ` in ${Math.round(delayMs / 100) / 10} s` : "";
    const title = `Retry ${wordOf(attempt)} of ${wordOf(maxAttempts)}${seconds}`;
    const description = typeof errorMessage === "string" ? errorMessage : undefined;
    this.notice({ severity: "warning", title, description });
  }

  #first(message: PiMessage, at: number): void {
    if (this.#title === undefined) this.#named(firstWords(message), at);
  }

  #named(name: unknown, at: number): void {
    const title = typeof name === "string" && name !== "" ? name : null;
    this.#title = title ?? "";
    this.#options.send({ sessionUpdate: "session_info_update", title, updatedAt: new Date(at).toISOString() });
  }

  /** An entry of the session's file that a daemon found after the one before it was killed. */
  #entry(entry: unknown, at: number, by: By | undefined): void {
    if (!isRecord(entry)) return;
    const { type, id, summary, timestamp, usage } = entry;
    const words = typeof summary === "string" ? summary : "";
    const writtenAt = typeof timestamp === "string" ? Date.parse(timestamp) : Number.NaN;
    if (type === "message") this.#messageEnd(entry["message"], at, by);
    else if (type === "custom_message") this.#custom({ ...entry, timestamp: writtenAt }, writtenAt, by);
    else if (type === "session_info") this.#named(entry["name"], at);
    else if (type === "compaction") {
      this.#compacted({ result: { summary, usage } }, Number.isNaN(writtenAt) ? at : writtenAt);
    } else if (type === "branch_summary") {
      this.#usage.add(usage);
      this.#options.send(branchSummary(`branch-${wordOf(id)}`, words));
    } else this.#usage.add(usage);
  }

  #sendUsage(): void {
    const update = this.#usage.update(this.#options.contextSize());
    if (update !== undefined) this.#options.send(update);
  }

  /** Whether entries have told what came later. */
  #isPast(at: number): boolean {
    return at < this.#lastAtMs;
  }

  #isTold(message: PiMessage): boolean {
    return this.#order.has(messageIdOf(message));
  }
}
