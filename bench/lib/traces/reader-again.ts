import type { LogEntry } from "../../../provider/log.ts";
import { type AnswerReply, answer, call } from "../../../provider/reply.ts";
import { callsOf, type Trace, type TraceCall, type TraceTurn } from "./trace.ts";

/** What a request still has of a result. The levels of the lost ones have numbers of their own. */
type Level = "whole" | "cut" | "masked" | "gone";

const losses: Readonly<Record<Level, number>> = { whole: 0, cut: 1, masked: 2, gone: 3 };
/** A longer text is a result that was cut, and still has a part of its content. */
const longestPlaceholder = 400;
const recallId = /\brecall (r\d{3,9})\b/;
/** For results that come back incomplete once more. */
const maxAttempts = 3;

/** A result that the model has received, with the calls that returned it. */
interface Known {
  readonly call: TraceCall;
  readonly ids: string[];
  level: Level;
  /** The levels in which it was lost. Each counts once. */
  readonly lost: Set<Level>;
  attempts: number;
}

/** A call by which the model gets a result back. */
interface Wish {
  readonly known: Known;
  readonly reply: AnswerReply;
}

/** How often results were got back. */
export interface AgainCounts {
  recalls: number;
  /** Calls of the tool that had returned the result. */
  repeats: number;
  /** Recalls whose text was not the complete original. */
  unlike: number;
}

/** Marks a call that repeats an earlier one, so that the trace's tools return the same result. */
const againMark = "again";

/**
 * A model that gets back results which its request no longer has in full: before each edit, the file's last read; and
 * each `every`th of the results for each way in which they were lost. It knows from its request what is lost, and
 * recalls only by ids in it.
 */
export class ReaderAgain {
  readonly counts: AgainCounts = { recalls: 0, repeats: 0, unlike: 0 };
  readonly #every: number | undefined;
  readonly #ranks: ReadonlyMap<string, number>;
  readonly #known = new Map<string, Known>();
  readonly #wanted = new Set<Known>();
  #calls = 0;
  #isAnswered = false;
  #recalled: { readonly known: Known; readonly id: string } | undefined;

  /** `every`: 5 for a fifth. Default: only before edits. */
  constructor(trace: Trace, every?: number) {
    this.#every = every;
    // By size, so that the chosen results have their share of the tokens, too.
    const results = [...new Set(callsOf(trace).map(({ result }) => result))].sort((a, b) => a.length - b.length);
    this.#ranks = new Map(results.map((result, rank) => [result, rank]));
  }

  /** The model has made a call of the trace. */
  made(call: TraceCall, id: string): void {
    const known = this.#known.get(call.result);
    if (known === undefined)
      this.#known.set(call.result, { call, ids: [id], level: "whole", lost: new Set(), attempts: 0 });
    else known.ids.push(id);
  }

  /** The call that precedes the next turn of the trace, if there is any. */
  next(request: LogEntry, turn: TraceTurn | undefined): AnswerReply | undefined {
    const shown = new Map(
      request.messages.flatMap(({ toolResults }) => toolResults.map(({ callId, text }) => [callId, text] as const)),
    );
    for (const known of this.#known.values()) this.#look(known, shown);
    if (this.#recalled !== undefined) this.#check(this.#recalled, shown);
    this.#recalled = undefined;
    const wish = this.#beforeEdit(request, shown, turn) ?? this.#oldest(request, shown);
    this.#isAnswered = wish !== undefined;
    return wish?.reply;
  }

  #look(known: Known, shown: ReadonlyMap<string, string>): void {
    const level = known.ids.reduce<Level>((best, id) => {
      const found = levelOf(known.call.result, shown.get(id));
      return losses[found] < losses[best] ? found : best;
    }, "gone");
    if (losses[level] > losses[known.level] && !known.lost.has(level)) {
      known.lost.add(level);
      if (this.#isChosen(known, level)) this.#wanted.add(known);
    }
    if (level === "whole") {
      this.#wanted.delete(known);
      known.attempts = 0;
    }
    known.level = level;
  }

  #isChosen({ call }: Known, level: Level): boolean {
    if (this.#every === undefined || call.tool === "edit" || this.#isObsolete(call)) return false;
    return (this.#ranks.get(call.result) ?? 0) % this.#every === losses[level] % this.#every;
  }

  /** A later call with the same arguments returned something else. */
  #isObsolete(call: TraceCall): boolean {
    const last = [...this.#known.values()].findLast((known) => isSameCall(known.call, call));
    return last !== undefined && last.call.result !== call.result;
  }

  #check({ known, id }: { readonly known: Known; readonly id: string }, shown: ReadonlyMap<string, string>): void {
    if (levelOf(known.call.result, shown.get(id)) !== "whole") this.counts.unlike += 1;
  }

  #beforeEdit(request: LogEntry, shown: ReadonlyMap<string, string>, turn: TraceTurn | undefined): Wish | undefined {
    const paths = (turn?.calls ?? []).filter(({ tool }) => tool === "edit").map(({ args }) => args["path"]);
    for (const path of paths) {
      const read = [...this.#known.values()].findLast(({ call }) => call.tool === "read" && call.args["path"] === path);
      if (read !== undefined && read.level !== "whole" && read.attempts < maxAttempts) {
        return this.#getBack(read, request, shown);
      }
    }
    return undefined;
  }

  /** Never twice in a row: a model also continues with its work. */
  #oldest(request: LogEntry, shown: ReadonlyMap<string, string>): Wish | undefined {
    if (this.#isAnswered) return undefined;
    for (const known of this.#wanted) {
      this.#wanted.delete(known);
      if (!this.#isObsolete(known.call)) return this.#getBack(known, request, shown);
    }
    return undefined;
  }

  #getBack(known: Known, request: LogEntry, shown: ReadonlyMap<string, string>): Wish {
    this.#calls += 1;
    known.attempts += 1;
    const id = `toolu_${againMark}_${String(this.#calls).padStart(6, "0")}`;
    const texts = known.ids.flatMap((one) => shown.get(one) ?? []);
    const named = texts.map((text) => recallId.exec(text)?.[1]).find((found) => found !== undefined);
    known.ids.push(id);
    if (named !== undefined && request.toolNames.includes("recall")) {
      this.counts.recalls += 1;
      this.#recalled = { known, id };
      return { known, reply: answer("I need all of it.", { ...call("recall", { id: named }), id }) };
    }
    this.counts.repeats += 1;
    const { tool, args } = known.call;
    return { known, reply: answer("I need it again.", { ...call(tool, args), id }) };
  }
}

function levelOf(result: string, text: string | undefined): Level {
  if (text === undefined) return "gone";
  if (text.startsWith(result)) return "whole";
  return text.length <= longestPlaceholder && recallId.test(text) ? "masked" : "cut";
}

function isSameCall(a: TraceCall, b: TraceCall): boolean {
  return a.tool === b.tool && JSON.stringify(a.args) === JSON.stringify(b.args);
}
