import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { closedRange, visibleIn } from "../../../bench/lib/pruning/compressor.ts";
import { code, prose } from "../../../bench/lib/traces/words.ts";
import type { LogEntry } from "../../../provider/log.ts";
import { answer, call, hang, type Reply } from "../../../provider/reply.ts";
import { Random } from "../../soak/random.ts";

/** The model's action in one answer. */
export type Step =
  | { readonly kind: "read"; readonly path: string }
  | { readonly kind: "say"; readonly text: string }
  /** Makes a block of the closed part, with the earlier blocks inside it or without. */
  | { readonly kind: "compress"; readonly takesBlocks: boolean };

export interface Plan {
  /** Texts of the user. Each run ends with a `say`. */
  readonly prompts: readonly string[];
  readonly steps: readonly Step[];
  /** Every text that is said and read, word for word. */
  readonly texts: readonly string[];
}

const promptsOfPlan = 20;
const turnsOfPrompt = 10;

/**
 * Two hundred turns: twenty prompts with nine reads each and an answer; a block every ten turns, and every fourth block
 * contains the others.
 */
export function makePlan(cwd: string): Plan {
  const random = new Random(21);
  const prompts: string[] = [];
  const steps: Step[] = [];
  const files: string[] = [];
  for (let at = 0; at < promptsOfPlan; at += 1) {
    prompts.push(`Task ${at + 1}: ${prose(random, 160).replaceAll("\n", " ")}`);
    // After the first reads, so that its calls and results are within the run too.
    for (let turn = 1; turn < turnsOfPrompt; turn += 1) {
      const path = `part-${at + 1}-${turn}.ts`;
      const text = `// ${path}\n${code(random, 1_200)}`;
      writeFileSync(join(cwd, path), text);
      files.push(text);
      steps.push({ kind: "read", path });
      if (at > 0 && turn === 4) steps.push({ kind: "compress", takesBlocks: at % 4 === 0 });
    }
    steps.push({ kind: "say", text: `Task ${at + 1} is done. ${prose(random, 200)}` });
  }
  const said = steps.flatMap((step) => (step.kind === "say" ? [step.text] : []));
  return { prompts, steps, texts: [...prompts, ...files, ...said] };
}

/** The model of one session: it performs the plan's steps, one for each request that it answers. */
export class LongRunModel {
  readonly requests: LogEntry[] = [];
  /** Requests that were answered with a compress call. */
  readonly compressing: LogEntry[] = [];
  readonly #steps: Step[];
  readonly #deaths: Set<number>;
  readonly #plan: Plan;
  #calls = 0;
  #reached = Promise.withResolvers<LogEntry>();
  #next = Promise.withResolvers<LogEntry>();

  /** `deaths`: the compressions (counted from 1) whose results the model does not answer, once each. */
  constructor(plan: Plan, deaths: readonly number[]) {
    this.#plan = plan;
    this.#steps = [...plan.steps];
    this.#deaths = new Set(deaths);
  }

  get stepsLeft(): number {
    return this.#steps.length;
  }

  get turnsDone(): number {
    return this.#plan.steps.length - this.#steps.length - this.compressing.length;
  }

  /** The next request that is never answered. */
  get dying(): Promise<LogEntry> {
    return this.#reached.promise;
  }

  /** The next request to arrive. */
  get next(): Promise<LogEntry> {
    return this.#next.promise;
  }

  readonly reply = (request: LogEntry): Reply => {
    this.requests.push(request);
    const next = this.#next;
    this.#next = Promise.withResolvers();
    next.resolve(request);
    if (this.#lastWasCompress && this.#deaths.delete(this.compressing.length)) {
      const reached = this.#reached;
      this.#reached = Promise.withResolvers();
      reached.resolve(request);
      return hang();
    }
    const step = this.#steps.shift();
    if (step === undefined) return answer("There is nothing left to do.");
    if (step.kind === "say") return answer(step.text);
    this.#calls += step.kind === "read" ? 1 : 0;
    if (step.kind === "read") return answer("I look.", call("read", { path: step.path }, `toolu_r${this.#calls}`));
    this.compressing.push(request);
    const made = this.compressing.length;
    const summary = `What was read for it (${made}): ${prose(new Random(made), 400)}`;
    const range = closedRange(visibleIn(request), { takesBlocks: step.takesBlocks, spare: 6, summary });
    const args = { topic: `Closed work ${made}`, ranges: range === undefined ? [] : [range] };
    return answer(call("compress", args, `toolu_c${made}`));
  };

  get #lastWasCompress(): boolean {
    const done = this.#plan.steps[this.#plan.steps.length - this.#steps.length - 1];
    return done?.kind === "compress";
  }
}
