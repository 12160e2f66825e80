import { isObject } from "../../../provider/json.ts";
import type { LogEntry } from "../../../provider/log.ts";
import { type AnswerReply, answer, call, type Reply, type ToolCall, type Usage } from "../../../provider/reply.ts";
import { Random } from "../../../test/soak/random.ts";
import { Compressor, type CompressPolicy } from "../pruning/compressor.ts";
import { PrefixWatch } from "../pruning/payload.ts";
import { type AgainCounts, ReaderAgain } from "./reader-again.ts";
import type { Trace, TraceCall, TraceTurn } from "./trace.ts";
import { prose } from "./words.ts";

/** Characters of a summary of earlier messages. */
export const summaryLength = 2_500;

/** The usage of the requests of one run. */
export interface Spending {
  readonly requests: readonly Usage[];
  /** Summaries, requested by pi or by one of our parts. */
  readonly summaries: readonly Usage[];
  /** Those of `requests` whose answer gets an earlier result back. */
  readonly again: readonly Usage[];
  readonly gotBack: AgainCounts;
  /** Answers of the trace that were never requested. */
  readonly leftOver: number;
  /** Requests that sent only what is new since the last answer. */
  readonly continued: number;
  /** Blocks that the model has created. */
  readonly compressions: number;
  /**
   * Requests that follow neither a compression nor a summary, and those of them that begin with the complete previous
   * request.
   */
  readonly prefix: { readonly requests: number; readonly same: number };
  readonly first: LogEntry | undefined;
}

interface Run {
  readonly trace: Trace;
  readonly turns: TraceTurn[];
  readonly requests: Usage[];
  readonly summaries: Usage[];
  readonly again: Usage[];
  readonly searched: Set<string>;
  readonly described: Set<string>;
  /** Calls of the last answer that another tool executed. */
  executed: readonly TraceCall[];
  /** Number of calls so far. Their ids are the same in each run, because they are sent, too. */
  calls: number;
  timeMs: number;
  readonly compressor: Compressor | undefined;
  readonly reader: ReaderAgain | undefined;
  readonly prefix: PrefixWatch;
  first: LogEntry | undefined;
  continued: number;
  /** Whether a summary was requested since the last request. */
  isSummarised: boolean;
}

/** What a model does apart from following its trace. Default: nothing. */
export interface ModelHabits {
  /** When it compresses. */
  readonly compresses?: CompressPolicy | undefined;
  /**
   * It gets back what its request has lost: `edits`, a file's last read before each edit; a number, in addition each
   * so manieth of the lost results, for example 5 for a fifth.
   */
  readonly readsAgain?: "edits" | number | undefined;
}

/** The model of all traces: a request's model identifies its run. */
export class TraceScript {
  readonly #runs = new Map<string, Run>();

  /** From now on requests to this model belong to the trace. */
  begin(model: string, trace: Trace, { compresses, readsAgain }: ModelHabits = {}): void {
    const every = readsAgain === "edits" ? undefined : readsAgain;
    this.#runs.set(model, {
      ...{ trace, turns: trace.prompts.flatMap(({ turns }) => turns), timeMs: 0 },
      ...{ requests: [], summaries: [], again: [] },
      ...{ searched: new Set<string>(), described: new Set<string>(), executed: [], calls: 0 },
      ...{
        compressor: compresses && new Compressor(compresses),
        reader: readsAgain === undefined ? undefined : new ReaderAgain(trace, every),
        prefix: new PrefixWatch(),
        first: undefined,
        continued: 0,
        isSummarised: false,
      },
    });
  }

  spending(model: string): Spending {
    const { requests, summaries, again, turns, compressor, reader, prefix, ...run } = this.#runOf(model);
    const compressions = compressor?.made ?? 0;
    const gotBack = reader?.counts ?? { recalls: 0, repeats: 0, unlike: 0 };
    const counts = { leftOver: turns.length, compressions, prefix: prefix.counts, continued: run.continued };
    return { requests, summaries, again, gotBack, ...counts, first: run.first };
  }

  /** For the provider: the time of a request by the trace's own clock. */
  readonly now = ({ headers, model = "" }: LogEntry): number => {
    const run = this.#runOf(model);
    // Requests of extensions have no time.
    run.timeMs = Math.max(run.timeMs, Number(headers["x-trace-time"] ?? 0));
    return run.timeMs;
  };

  /** For the provider: the model's answer. */
  readonly answer = (request: LogEntry): Reply => {
    const run = this.#runOf(request.model ?? "");
    // A part of ours requests some summaries with the conversation's tools.
    const isSummary = request.toolNames.length === 0 || request.headers["x-trace-time"] === undefined;
    void request.ended.then(() => {
      if (request.usage !== undefined) (isSummary ? run.summaries : run.requests).push(request.usage);
    });
    if (isSummary) {
      run.isSummarised = true;
      return answer(prose(new Random(5), summaryLength));
    }
    run.first ??= request;
    if (isObject(request.body["thread"]) && request.body["thread"]["type"] === "continue") run.continued += 1;
    run.prefix.take(request, run.isSummarised || (run.compressor?.hasJustCompressed ?? false));
    run.isSummarised = false;
    const other = run.compressor?.next(request);
    if (other !== undefined) return identified(run, other);
    const again = run.reader?.next(request, run.turns[0]);
    if (again === undefined) return next(run, request.toolNames);
    void request.ended.then(() => run.again.push(...[request.usage].flatMap((usage) => usage ?? [])));
    return again;
  };

  #runOf(model: string): Run {
    const run = this.#runs.get(model);
    if (run === undefined) throw new Error(`No run has the model "${model}".`);
    return run;
  }
}

function identified(run: Run, reply: AnswerReply, calls: readonly TraceCall[] = []): AnswerReply {
  const left = [...calls];
  const parts = reply.parts.map((part) => {
    if (part.kind !== "toolCall") return part;
    run.calls += 1;
    const id = `toolu_${String(run.calls).padStart(6, "0")}`;
    const made = left.shift();
    if (made !== undefined) run.reader?.made(made, id);
    return { ...part, id };
  });
  return { ...reply, parts };
}

function next(run: Run, declared: readonly string[]): AnswerReply {
  // Tools that cannot run on the model's behalf were declared instead, and are now called by name.
  const again = run.executed.filter(({ tool }) => declared.includes(tool));
  run.executed = [];
  if (again.length > 0) {
    const calls = again.map(({ tool, args }) => call(tool, args));
    return identified(run, answer("It is declared now.", ...calls), again);
  }
  const [turn] = run.turns;
  if (turn === undefined) return answer("The trace has no further answers.");
  const hidden = turn.calls.filter(({ tool }) => !declared.includes(tool));
  const found = looksFor(run, hidden, declared);
  if (found !== undefined) return identified(run, found);
  run.turns.shift();
  run.executed = hidden;
  const calls = turn.calls.map((one) =>
    hidden.includes(one) ? call("execute_tool", { id: one.tool, params: one.args }) : call(one.tool, one.args),
  );
  return identified(run, answer(turn.text, ...calls), turn.calls);
}

/** Before a model first calls a tool that is not declared, it searches for the tool and reads its description. */
function looksFor(run: Run, hidden: readonly TraceCall[], declared: readonly string[]): AnswerReply | undefined {
  if (hidden.length === 0) return undefined;
  const search = ["search_tools", "tool_search"].find((name) => declared.includes(name));
  if (search === undefined) throw new Error(`The request does not declare ${hidden[0]?.tool}, and has no search.`);
  const unknown = hidden.filter(({ tool }) => !run.searched.has(tool));
  if (unknown.length > 0) {
    for (const { tool } of unknown) run.searched.add(tool);
    return answer("Which tool can do this?", ...unknown.map((one) => searchFor(search, one, run.trace)));
  }
  const ids = hidden.map(({ tool }) => tool).filter((tool) => !run.described.has(tool));
  if (ids.length === 0 || !declared.includes("describe_tools")) return undefined;
  for (const id of ids) run.described.add(id);
  return answer("Which params does it have?", call("describe_tools", { ids }));
}

function searchFor(search: string, { tool }: TraceCall, trace: Trace): ToolCall {
  const described = trace.tools.find(({ name }) => name === tool)?.description ?? tool;
  return call(search, { query: described.split(" ").slice(0, 12).join(" ") });
}
