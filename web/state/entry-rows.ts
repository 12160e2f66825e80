import type { By, Delivery } from "../../client/browser.ts";
import type { TranscriptCut } from "../../protocol/transcript-methods.ts";
import { GrowingMarkdown } from "../text/blocks.ts";
import { contentSegments, isCutWithin, missingIn, picturesIn, segmentAt, type ValueSource } from "./entry-values.ts";
import type {
  AnswerHead,
  LongText,
  NoteItem,
  PushItem,
  TextItem,
  ThoughtItem,
  ToolItem,
  UserItem,
  Who,
} from "./items.ts";
import { LiveText, type PieceReader, Pieces, type Segment } from "./long-texts.ts";
import { answerEndNote, entryNote, note } from "./notes.ts";
import { contentBlocks, isRecord, jsonText, messageKey, numberOf, type PiValue, textOf } from "./pi-values.ts";
import { type Cell, cell } from "./rows.ts";
import { countLines, isChange, whatOf } from "./tools.ts";

/** What rows show that is not in the entries. */
export interface EntryContext {
  readonly read: PieceReader;
  /** Who wrote a user's message. `by`: the client that an event names. */
  who(entryId: string | undefined, by: By | undefined): Who;
  delivery(deliveryId: string): Delivery | undefined;
  /**
   * Called with rows that change later: a user's message whose entry is known, when its prompt becomes known, and a push
   * when its state changes. `id`: of the entry, or of the delivery.
   */
  add(id: string, row: Cell): void;
}

/** pi's id of the message that only starts a run. The model does not get it. */
const carrierType = "pi-rpcd.carrier";

/** The text of an answer's block that was shown while it came, by the block's place. */
export type ShownText = (index: number) => GrowingMarkdown | undefined;

interface BlockOptions {
  readonly at: number | undefined;
  readonly head: AnswerHead | undefined;
  readonly shown?: GrowingMarkdown | undefined;
}

interface ToolResult {
  readonly value: PiValue;
  readonly source: ValueSource;
  readonly at: number | undefined;
}

/** Makes rows of entries and messages. Pages can come newest first: results of tools wait for their calls. */
export class EntryRows {
  readonly #context: EntryContext;
  /** Calls without a result, by pi's id of the call. Providers may use an id again, so the last one counts. */
  readonly #calls = new Map<string, Cell[]>();
  /** Results whose call is on an earlier page. */
  readonly #results = new Map<string, ToolResult[]>();

  /** The ids of the entries that the pages have, and when the first of them was written. */
  readonly #paged = new Set<string>();
  #since: number | undefined;
  /** The ids of the entries with the first model and level. */
  readonly #beginning = new Set<unknown>();

  constructor(context: EntryContext) {
    this.#context = context;
  }

  /** The rows of a page, before all others. `isEnd`: calls without a result can still get one. */
  page(entries: readonly PiValue[], cuts: readonly TranscriptCut[], isEnd: boolean): readonly Cell[] {
    const later = new Map(this.#results);
    this.#results.clear();
    const open = new Map(this.#calls);
    this.#calls.clear();
    for (const entry of entries) {
      this.#paged.add(textOf(entry["id"]));
      this.#since = Math.min(timeOf(entry) ?? Number.POSITIVE_INFINITY, this.#since ?? Number.POSITIVE_INFINITY);
    }
    const rows = entries.flatMap((entry) => this.entry(entry, cuts));
    for (const [callId, results] of later) {
      for (const result of results) if (!this.#end(callId, result)) this.#keep(callId, result);
    }
    if (!isEnd) this.loseCalls();
    for (const [callId, cells] of open) this.#calls.set(callId, cells);
    return rows;
  }

  /**
   * Whether an entry is on a page, or older than all of them. A log that has reported nothing yet tells the whole file when
   * its pi crashes.
   */
  isPaged(entry: PiValue): boolean {
    if (this.#since === undefined) return false;
    return this.#paged.has(textOf(entry["id"])) || (timeOf(entry) ?? Number.POSITIVE_INFINITY) < this.#since;
  }

  /** `by`: the client that sent it, as an event names it. */
  entry(entry: PiValue, cuts: readonly TranscriptCut[] = [], by?: By): readonly Cell[] {
    const id = textOf(entry["id"]);
    const own = cuts.filter(({ entryId }) => entryId === id);
    const source: ValueSource = { key: id, entryId: id, base: "", cuts: own, read: this.#context.read };
    const at = timeOf(entry);
    const { type, message } = entry;
    if (own.some(({ path }) => path === "" || path === "/message")) return [tooLong(source, at)];
    if (type === "message" && isRecord(message)) return this.message(message, { ...source, base: "/message" }, by);
    if (type === "custom_message") return this.#custom(entry, source, at);
    if (this.#isBeginning(entry)) return [];
    const summary = segmentAt(source, "/summary", textOf(entry["summary"]));
    const item = entryNote(entry, at, summary.text === "" ? undefined : this.#text([summary]));
    return item === undefined ? [] : [cell(id, { ...item, entryId: id })];
  }

  /** Whether it says with what the session began: that is no change. */
  #isBeginning({ type, id, parentId }: PiValue): boolean {
    const isFirst = parentId === null || this.#beginning.has(parentId);
    if (!isFirst || (type !== "model_change" && type !== "thinking_level_change")) return false;
    this.#beginning.add(id);
    return true;
  }

  /** The rows of a complete message. */
  message(message: PiValue, source: ValueSource, by?: By): readonly Cell[] {
    const at = numberOf(message["timestamp"]);
    switch (message["role"]) {
      case "user":
        return this.#user(message, source, at, by);
      case "assistant":
        return this.answer(message, source);
      case "toolResult":
        this.result(textOf(message["toolCallId"]), { value: message, source, at });
        return [];
      case "custom":
        return this.#custom(message, source, at);
      case "bashExecution":
        return [this.#command(message, source, at)];
      default:
        return [];
    }
  }

  /** The rows of an answer: one for each thought, text and tool call, and one for an end before its end. */
  answer(message: PiValue, source: ValueSource, shown: ShownText = () => undefined): readonly Cell[] {
    const at = numberOf(message["timestamp"]);
    const rows: Cell[] = [];
    for (const [index, block] of contentBlocks(message["content"]).entries()) {
      const head = rows.length === 0 ? headOf(message, at) : undefined;
      const row = isRecord(block) ? this.block(block, index, source, { at, head, shown: shown(index) }) : undefined;
      if (row !== undefined) rows.push(row);
    }
    const isCut = message["stopReason"] === "aborted" || message["stopReason"] === "error";
    const last = rows.at(-1)?.item;
    if (isCut && (last?.value.kind === "text" || last?.value.kind === "thought"))
      last.value = { ...last.value, progress: "cut" };
    const end = answerEndNote(message, at);
    if (end !== undefined) rows.push(cell(`${source.key}/end`, withEntry(end, source)));
    return rows;
  }

  /** A block of an answer. Undefined: it shows nothing. */
  block(block: PiValue, index: number, source: ValueSource, { at, head, shown }: BlockOptions): Cell | undefined {
    const id = `${source.key}/${index}`;
    const common = withEntry({ at, ...(head === undefined ? {} : { head }) }, source);
    if (block["type"] === "text") {
      const segment = segmentAt(source, `/content/${index}/text`, textOf(block["text"]));
      return isBlank(segment) ? undefined : this.#answerText(id, segment, common, shown);
    }
    if (block["type"] === "thinking") {
      const segment = segmentAt(source, `/content/${index}/thinking`, textOf(block["thinking"]));
      const isRedacted = block["redacted"] === true;
      if (isBlank(segment) && !isRedacted) return undefined;
      return cell(id, { kind: "thought", ...common, progress: "whole", text: this.#text([segment]), isRedacted });
    }
    return block["type"] === "toolCall" ? this.#call(id, block, index, source, common) : undefined;
  }

  /** The result of a tool: ends its row, now or when the page with its call comes. */
  result(callId: string, result: ToolResult): void {
    if (!this.#end(callId, result)) this.#keep(callId, result);
  }

  /** A tool call without a result that may get one. */
  openCall(callId: string): Cell | undefined {
    return this.#calls.get(callId)?.at(-1);
  }

  addCall(callId: string, row: Cell): void {
    this.#calls.set(callId, [...(this.#calls.get(callId) ?? []), row]);
  }

  /** No more results come for the calls that wait for one. */
  loseCalls(): void {
    for (const cells of this.#calls.values()) {
      for (const { item } of cells) if (item.value.kind === "tool") item.value = { ...item.value, state: "lost" };
    }
    this.#calls.clear();
  }

  #keep(callId: string, result: ToolResult): void {
    this.#results.set(callId, [...(this.#results.get(callId) ?? []), result]);
  }

  #end(callId: string, { value, source, at }: ToolResult): boolean {
    const cells = this.#calls.get(callId);
    const row = cells?.pop();
    if (cells?.length === 0) this.#calls.delete(callId);
    if (row?.item.value.kind !== "tool") return false;
    const item = row.item.value;
    const { details } = value;
    const segments = contentSegments(source, value["content"]);
    const diff = isRecord(details) && textOf(details["diff"]) !== "" ? textOf(details["diff"]) : undefined;
    row.item.value = {
      ...item,
      state: value["isError"] === true ? "failed" : "done",
      ...(at === undefined ? {} : { endedAt: item.endedAt ?? at }),
      output: this.#text(segments),
      ...(source.entryId === undefined ? {} : { outputEntryId: source.entryId }),
      pictures: picturesIn(source, value["content"]),
      ...(diff === undefined
        ? {}
        : { diff: this.#text([segmentAt(source, "/details/diff", diff)]), ...countLines(diff) }),
    };
    return true;
  }

  #text(segments: readonly Segment[]): LongText {
    return new Pieces(segments, { read: this.#context.read });
  }

  #user(message: PiValue, source: ValueSource, at: number | undefined, by: By | undefined): readonly Cell[] {
    const text = this.#text(contentSegments(source, message["content"]));
    const pictures = picturesIn(source, message["content"]);
    const who = this.#context.who(source.entryId, by);
    const item: UserItem = withEntry({ kind: "user", at, text, pictures, who }, source);
    const row = cell(source.key, item);
    if (source.entryId !== undefined) this.#context.add(source.entryId, row);
    return [row];
  }

  #custom(value: PiValue, source: ValueSource, at: number | undefined): readonly Cell[] {
    const { customType, display, details } = value;
    const ours = isRecord(details) && isRecord(details["pi-rpcd"]) ? details["pi-rpcd"] : {};
    const deliveryId = textOf(ours["deliveryId"]);
    if (customType === carrierType || (display === false && deliveryId === "")) return [];
    const item: PushItem = withEntry(
      {
        kind: "push",
        at,
        customType: textOf(customType),
        text: this.#text(contentSegments(source, value["content"])),
        pictures: picturesIn(source, value["content"]),
        ...(deliveryId === "" ? {} : { deliveryId, ...pushState(this.#context.delivery(deliveryId)) }),
      },
      source,
    );
    const row = cell(source.key, item);
    if (deliveryId !== "") this.#context.add(deliveryId, row);
    return [row];
  }

  #command(message: PiValue, source: ValueSource, at: number | undefined): Cell {
    const { command, output, exitCode, cancelled } = message;
    const item: ToolItem = withEntry(
      {
        kind: "tool",
        at,
        callId: "",
        name: "bash",
        what: whatOf("bash", { command }),
        state: cancelled === true || (numberOf(exitCode) ?? 0) !== 0 ? "failed" : "done",
        args: this.#text([segmentAt(source, "/command", textOf(command))]),
        output: this.#text([segmentAt(source, "/output", textOf(output))]),
        pictures: [],
        isChange: false,
        isOfUser: true,
      },
      source,
    );
    return cell(source.key, item);
  }

  #answerText(
    id: string,
    segment: Segment,
    common: Pick<TextItem, "at" | "head" | "entryId">,
    shown: GrowingMarkdown | undefined,
  ): Cell {
    if (shown !== undefined && segment.rest === undefined && shown.text === segment.text) {
      const { blocks } = shown;
      return cell(id, { kind: "text", ...common, progress: "whole", blocks, text: new LiveText(segment.text) });
    }
    const markdown = new GrowingMarkdown();
    let row: Cell | undefined;
    const onMore = (added: string): void => {
      markdown.append(added);
      if (row?.item.value.kind === "text") row.item.value = { ...row.item.value, blocks: markdown.blocks };
    };
    const text = new Pieces([segment], { read: this.#context.read, onMore });
    row = cell(id, { kind: "text", ...common, progress: "whole", blocks: markdown.blocks, text });
    return row;
  }

  #call(
    id: string,
    block: PiValue,
    index: number,
    source: ValueSource,
    common: Pick<ThoughtItem, "at" | "head" | "entryId">,
  ): Cell {
    const { id: callId, name, arguments: args } = block;
    const toolName = textOf(name);
    const row = cell(id, {
      kind: "tool",
      ...common,
      callId: textOf(callId),
      name: toolName,
      what: whatOf(toolName, args),
      state: "called",
      args: this.#args(args, `/content/${index}/arguments`, source),
      pictures: [],
      isChange: isChange(toolName),
      isOfUser: false,
      ...this.#written(toolName, args, `/content/${index}/arguments/content`, source),
    });
    this.addCall(textOf(callId), row);
    return row;
  }

  /** The arguments as JSON. If a part of them was cut, they come again as a whole, in pieces. */
  #args(args: unknown, path: string, source: ValueSource): LongText {
    const cut = missingIn(source, path);
    if (cut !== undefined) return this.#text([{ text: "", rest: cut }]);
    if (!isCutWithin(source, path)) return this.#text([{ text: jsonText(args) }]);
    const within = source.cuts.filter((part) => part.path.startsWith(`${source.base}${path}/`));
    const [first] = within;
    const bytes = within.reduce((sum, part) => sum + part.bytes, 0);
    if (first === undefined || source.entryId === undefined) return this.#text([{ text: jsonText(args) }]);
    const { place } = first;
    const whole = { entryId: source.entryId, path: `${source.base}${path}`, place, offset: 0, bytes };
    return this.#text([{ text: `${jsonText(args)}\n\n` }, { text: "", rest: whole }]);
  }

  /** The new text of a file that `write` writes, as added lines. */
  #written(
    name: string,
    args: unknown,
    path: string,
    source: ValueSource,
  ): Pick<ToolItem, "diff" | "added" | "removed"> {
    if (name !== "write" || !isRecord(args) || typeof args["content"] !== "string") return {};
    const segment = segmentAt(source, path, args["content"]);
    let isAtStart = true;
    const change = (added: string): string => {
      const lines = `${isAtStart ? "+" : ""}${added.replace(/\n(?=[\s\S])/g, "\n+")}`;
      isAtStart = added.endsWith("\n");
      return lines;
    };
    const diff = new Pieces([segment], { read: this.#context.read, change });
    if (segment.rest !== undefined) return { diff };
    const { text } = segment;
    return { diff, added: text === "" ? 0 : text.replace(/\n$/, "").split("\n").length, removed: 0 };
  }
}

export function headOf(message: PiValue, at: number | undefined): AnswerHead {
  return { model: textOf(message["responseModel"]) || textOf(message["model"]), at };
}

/** What a delivery says of its push. */
export function pushState(delivery: Delivery | undefined): Pick<PushItem, "state" | "evidence" | "reason"> {
  if (delivery === undefined) return {};
  const { state, evidence, reason } = delivery;
  return {
    state,
    ...(evidence === undefined ? {} : { evidence }),
    ...(reason === undefined ? {} : { reason: reason.message }),
  };
}

function withEntry<Value extends object>(
  value: Value,
  { entryId }: ValueSource,
): Value & { readonly entryId?: string } {
  return entryId === undefined ? value : { ...value, entryId };
}

/** An entry of which the page has next to nothing. Its JSON can be read in pieces. */
function tooLong(source: ValueSource, at: number | undefined): Cell {
  const [cut] = source.cuts;
  const bytes = cut?.bytes ?? 0;
  const rest = missingIn(source, cut?.path ?? "");
  const detail = new Pieces([{ text: "", rest }], { read: source.read });
  const item: NoteItem = note("session", `This entry is too long to show: ${bytes} bytes.`, at, { detail });
  return cell(source.key, withEntry(item, source));
}

function timeOf({ timestamp }: PiValue): number | undefined {
  return typeof timestamp === "string" ? numberOf(Date.parse(timestamp)) : undefined;
}

function isBlank({ text, rest }: Segment): boolean {
  return rest === undefined && text.trim() === "";
}

/** The source of a message in an event, which has all of it. */
export function liveSource(message: PiValue, read: PieceReader): ValueSource {
  return { key: messageKey(message), base: "", cuts: [], read };
}
