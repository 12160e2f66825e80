import { batch } from "@preact/signals";
import type { By, SessionEnvelope } from "../../client/browser.ts";
import { GrowingMarkdown } from "../text/blocks.ts";
import { type EntryRows, headOf, liveSource } from "./entry-rows.ts";
import type { ValueSource } from "./entry-values.ts";
import type { AnswerHead, Item } from "./items.ts";
import { LiveText, type PieceReader } from "./long-texts.ts";
import type { Page } from "./page.ts";
import { contentBlocks, endOf, isRecord, messageKey, numberOf, oneLine, type PiValue, textOf } from "./pi-values.ts";
import { type Cell, cell, type Rows } from "./rows.ts";

export interface LiveRowsOptions {
  readonly rows: Rows;
  readonly entries: EntryRows;
  readonly read: PieceReader;
  readonly page: Page;
  /** Up to this number of the session's log, messages are entries that are shown already. */
  readonly cursor: number;
}

interface LiveBlock {
  readonly kind: "text" | "thinking" | "toolCall";
  /** What was received and is not shown yet. */
  pending: string;
  readonly markdown: GrowingMarkdown;
  readonly text: LiveText;
  row: Cell | undefined;
  /** Some of its text was lost: the rest comes with its end. */
  isHeld: boolean;
}

interface Answer {
  readonly message: PiValue;
  readonly source: ValueSource;
  readonly blocks: Map<number, LiveBlock>;
  readonly startedAt: number;
  hasHead: boolean;
}

/** How much of the output of a running tool, and of arguments that come, is shown: the end, in UTF-16 units. */
const runningChars = 16 * 1_024;

/** What is told again comes at once: after this time without an event nothing more of it comes. */
const pauseMs = 200;

/** Turns pi's events into rows, each message once. */
export class LiveRows {
  readonly #options: LiveRowsOptions;
  #answer: Answer | undefined;
  /** Outputs of running tools that are not shown yet, by pi's id of the call. */
  readonly #outputs = new Map<string, unknown>();
  #cancelFrame: (() => void) | undefined;
  #position = 0;
  #lastAt = 0;
  #isClosed = false;

  constructor(options: LiveRowsOptions) {
    this.#options = options;
  }

  /** Whether live text was left out that its message will bring. */
  get isIncomplete(): boolean {
    return [...(this.#answer?.blocks.values() ?? [])].some(({ isHeld }) => isHeld);
  }

  /** The place in the log before the answer that comes now. Undefined: none comes. */
  get openAfter(): number | undefined {
    return this.#answer === undefined ? undefined : this.#answer.startedAt - 1;
  }

  /** `by`: the client that sent the message of the event. */
  event(event: PiValue, { at, seq, by }: Pick<SessionEnvelope, "at" | "seq" | "by">): void {
    if (this.#isClosed) return;
    this.#position = Math.max(this.#position, seq);
    this.#lastAt = this.#options.page.now();
    const isEntry = seq <= this.#options.cursor;
    switch (event["type"]) {
      case "message_start":
        this.#start(event["message"], seq);
        break;
      case "message_update":
        this.#update(event["assistantMessageEvent"]);
        break;
      case "message_end":
        this.#end(event["message"], isEntry, by);
        break;
      case "tool_execution_start":
      case "tool_execution_update":
      case "tool_execution_end":
        this.#tool(event, at, seq);
        break;
      case "rpcd_entry":
        if (!isEntry && isRecord(event["entry"]) && !this.#options.entries.isPaged(event["entry"]))
          this.#options.rows.append(this.#options.entries.entry(event["entry"], [], by));
        break;
      default:
    }
    this.#draw();
  }

  /** Numbers of the log that do not come. `onlyDeltas`: the ends of messages and tools have what is missing. */
  gap(to: number): void {
    this.#position = Math.max(this.#position, to);
    for (const block of this.#answer?.blocks.values() ?? []) block.isHeld = true;
    this.#draw();
  }

  /** Another notification has this number. */
  passed(seq: number): void {
    this.#position = Math.max(this.#position, seq);
    this.#draw();
  }

  /** The run has ended: what has no end gets none. */
  runEnded(): void {
    this.flush();
    const answer = this.#answer;
    this.#answer = undefined;
    for (const { row } of answer?.blocks.values() ?? []) {
      if (row !== undefined) row.item.value = cutItem(row.item.value);
    }
    this.#options.entries.loseCalls();
  }

  /** Shows what was received, now. */
  flush(): void {
    this.#cancelFrame?.();
    this.#cancelFrame = undefined;
    if (this.#isClosed) return;
    if (!this.#hasCaughtUp) {
      // A page that is seen again asks from the beginning of the answer.
      if (!this.#options.page.isHidden && (this.#answer !== undefined || this.#outputs.size > 0)) this.#draw();
      return;
    }
    batch(() => {
      for (const [index, block] of this.#answer?.blocks ?? []) this.#show(index, block);
      for (const [callId, content] of this.#outputs) this.#showOutput(callId, content);
      this.#outputs.clear();
    });
  }

  close(): void {
    this.#isClosed = true;
    this.#cancelFrame?.();
  }

  /**
   * Until the history's place in the log, the answer can be one that is an entry. The number of that place may be of a
   * notification that this page does not get, so a pause counts too.
   */
  get #hasCaughtUp(): boolean {
    const { cursor, page } = this.#options;
    return this.#position >= cursor || page.now() - this.#lastAt >= pauseMs;
  }

  #draw(): void {
    if (this.#options.page.isHidden) this.flush();
    else this.#cancelFrame ??= this.#options.page.frame(() => this.flush());
  }

  #start(message: unknown, seq: number): void {
    if (!isRecord(message) || message["role"] !== "assistant") return;
    const source = liveSource(message, this.#options.read);
    const isSame = this.#answer !== undefined && messageKey(this.#answer.message) === messageKey(message);
    const former = isSame ? [...(this.#answer?.blocks.values() ?? [])].flatMap(({ row }) => row ?? []) : [];
    // It is told from its beginning again.
    if (former.length > 0) this.#options.rows.replace(former, []);
    this.#answer = { message, source, blocks: new Map(), startedAt: seq, hasHead: false };
  }

  #update(step: unknown): void {
    const answer = this.#answer;
    if (answer === undefined || !isRecord(step)) return;
    const { type, contentIndex: index, delta, content } = step;
    if (typeof index !== "number") return;
    const [kind, part] = textOf(type).split("_");
    if (kind !== "text" && kind !== "thinking" && kind !== "toolcall") return;
    const isNew = !answer.blocks.has(index);
    const block = blockOf(answer, index, kind === "toolcall" ? "toolCall" : kind);
    if (isNew && part !== "start") block.isHeld = true;
    if (part === "delta" && !block.isHeld) block.pending += textOf(delta);
    if (part === "end" && typeof content === "string") complete(block, content);
    if (kind === "toolcall" && part === "start") this.#showCall(answer, index, block, step["id"], step["toolName"]);
  }

  #end(message: unknown, isEntry: boolean, by: By | undefined): void {
    if (!isRecord(message)) return;
    const { rows, entries, read } = this.#options;
    const source = liveSource(message, read);
    if (message["role"] === "assistant") {
      const answer = this.#answer;
      this.#answer = undefined;
      const isThis = answer !== undefined && messageKey(answer.message) === messageKey(message);
      const former = [...(answer?.blocks.values() ?? [])].flatMap(({ row }) => row ?? []);
      if (isEntry) rows.replace(former, []);
      else
        rows.replace(
          former,
          entries.answer(message, source, (index) => shownIn(isThis ? answer : undefined, index)),
        );
      return;
    }
    if (isEntry) return;
    // The end of the tool's execution brought it, unless that was lost.
    const callId = textOf(message["toolCallId"]);
    if (message["role"] === "toolResult" && entries.openCall(callId) === undefined) return;
    rows.append(entries.message(message, source, by));
  }

  #tool(event: PiValue, at: number, seq: number): void {
    const { type, toolCallId, toolName, args, result, partialResult, isError, parentToolCallId } = event;
    // A call of a tool's script is in no message, so after a reload it would be gone.
    if (typeof toolCallId !== "string" || parentToolCallId !== undefined) return;
    const { entries, rows, read, cursor } = this.#options;
    let row = entries.openCall(toolCallId);
    if (row === undefined && type === "tool_execution_start" && seq > cursor) {
      const call = { type: "toolCall", id: toolCallId, name: toolName, arguments: args };
      const source = { key: `call-${seq}`, base: "", cuts: [], read };
      row = entries.block(call, 0, source, { at, head: undefined });
      if (row !== undefined) rows.append([row]);
    }
    if (row?.item.value.kind !== "tool") return;
    const item = row.item.value;
    if (type === "tool_execution_start") row.item.value = { ...item, state: "running", startedAt: at };
    else if (type === "tool_execution_update") {
      this.#outputs.set(toolCallId, isRecord(partialResult) ? partialResult["content"] : undefined);
    } else {
      this.#outputs.delete(toolCallId);
      const { content, details } = isRecord(result) ? result : {};
      const source = { key: row.id, base: "", cuts: [], read };
      entries.result(toolCallId, { value: { content, details, isError }, source, at });
    }
  }

  #showCall(answer: Answer, index: number, block: LiveBlock, id: unknown, name: unknown): void {
    const item: Item = {
      kind: "tool",
      ...this.#headed(answer),
      at: numberOf(answer.message["timestamp"]),
      callId: textOf(id),
      name: oneLine(textOf(name), 200),
      what: "",
      state: "writing",
      args: block.text,
      pictures: [],
      isChange: false,
      isOfUser: false,
    };
    block.row = cell(`${answer.source.key}/${index}`, item);
    if (this.#hasCaughtUp) this.#options.rows.append([block.row]);
  }

  #show(index: number, block: LiveBlock): void {
    const answer = this.#answer;
    if (answer === undefined) return;
    const added = block.pending;
    block.pending = "";
    if (block.row !== undefined && !this.#options.rows.has(block.row)) this.#options.rows.append([block.row]);
    if (block.kind === "toolCall") {
      if (added !== "") block.text.text.value = endOf(block.text.text.value + added, runningChars);
      return;
    }
    if (added !== "") {
      block.markdown.append(added);
      block.text.text.value += added;
    }
    if (block.row === undefined && block.text.text.value.trim() === "" && !block.isHeld) return;
    const item = this.#item(answer, block);
    if (block.row !== undefined) block.row.item.value = item;
    else {
      block.row = cell(`${answer.source.key}/${index}`, item);
      this.#options.rows.append([block.row]);
    }
  }

  #item(answer: Answer, block: LiveBlock): Item {
    const progress = block.isHeld ? "incomplete" : "streaming";
    const before = block.row?.item.value;
    const head = before !== undefined && "head" in before ? { head: before.head } : this.#headed(answer);
    const common = { ...head, at: numberOf(answer.message["timestamp"]), progress, text: block.text } as const;
    if (block.kind === "thinking") return { kind: "thought", ...common, isRedacted: false };
    return { kind: "text", ...common, blocks: block.markdown.blocks };
  }

  #headed(answer: Answer): { readonly head?: AnswerHead } {
    if (answer.hasHead) return {};
    answer.hasHead = true;
    return { head: headOf(answer.message, numberOf(answer.message["timestamp"])) };
  }

  #showOutput(callId: string, content: unknown): void {
    const row = this.#options.entries.openCall(callId);
    if (row?.item.value.kind !== "tool") return;
    const texts = contentBlocks(content).map((block) => (isRecord(block) ? textOf(block["text"]) : ""));
    row.item.value = { ...row.item.value, output: new LiveText(endOf(texts.join("\n\n"), runningChars)) };
  }
}

function blockOf(answer: Answer, index: number, kind: LiveBlock["kind"]): LiveBlock {
  const known = answer.blocks.get(index);
  if (known?.kind === kind) return known;
  const block: LiveBlock = {
    kind,
    pending: "",
    markdown: new GrowingMarkdown(),
    text: new LiveText(),
    row: undefined,
    isHeld: false,
  };
  answer.blocks.set(index, block);
  return block;
}

/** The end of a block has its whole text: what was lost of it comes now. */
function complete(block: LiveBlock, content: string): void {
  const known = block.text.text.value + block.pending;
  if (content.startsWith(known)) {
    block.pending += content.slice(known.length);
    block.isHeld = false;
  }
}

function shownIn(answer: Answer | undefined, index: number): GrowingMarkdown | undefined {
  const block = answer?.blocks.get(index);
  return block?.kind === "text" ? block.markdown : undefined;
}

/** An item whose end never comes. */
function cutItem(item: Item): Item {
  if (item.kind === "text" || item.kind === "thought") return { ...item, progress: "cut" };
  return item.kind === "tool" ? { ...item, state: "lost" } : item;
}
