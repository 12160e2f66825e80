import type { Gate } from "./gate.ts";
import type { LogEntry } from "./log.ts";
import { answer, gatesOf, type Reply } from "./reply.ts";

/**
 * Creates the reply from the request. An error that it throws is answered by a 400 and listed in the entry's
 * `violations`.
 */
export type Responder = (request: LogEntry) => Reply | string | Promise<Reply | string>;

/** The reply of a step: a string is an answer of one delta. */
export type Source = string | Reply | Responder;
export type Matcher = (request: LogEntry) => boolean;
export type Step = Source | Conditional;

export interface Conditional {
  readonly kind: "when";
  readonly matches: Matcher;
  readonly source: Source;
}

/** A step that only a matching request takes; other requests take the next step that they match. */
export function when(matches: Matcher, source: Source): Step {
  return { kind: "when", matches, source };
}

/** Steps that are used up in order, and a responder for the other requests. */
export class Script {
  readonly #steps: Step[];
  readonly #otherwise: Responder;
  readonly #gates = new Set<Gate>();

  constructor(steps: readonly Step[], otherwise: Responder) {
    this.#steps = [...steps];
    this.#otherwise = otherwise;
  }

  get remaining(): number {
    return this.#steps.length;
  }

  add(steps: readonly Step[]): void {
    this.#steps.push(...steps);
  }

  /** The reply to a request; the first step that takes it is used up. */
  async replyTo(request: LogEntry): Promise<Reply> {
    const source = this.#take(request) ?? this.#otherwise;
    const made = typeof source === "function" ? await source(request) : source;
    const reply = typeof made === "string" ? answer(made) : made;
    for (const gate of gatesOf(reply)) this.#gates.add(gate);
    return reply;
  }

  /** Drops the remaining steps, and abandons their gates and those of all earlier replies. */
  abandon(reason: Error): void {
    for (const step of this.#steps.splice(0)) {
      const source = isConditional(step) ? step.source : step;
      if (typeof source === "object") for (const gate of gatesOf(source)) this.#gates.add(gate);
    }
    for (const gate of this.#gates) gate.abandon(reason);
    this.#gates.clear();
  }

  #take(request: LogEntry): Source | undefined {
    const index = this.#steps.findIndex((step) => !isConditional(step) || step.matches(request));
    if (index === -1) return undefined;
    const [step] = this.#steps.splice(index, 1);
    return step !== undefined && isConditional(step) ? step.source : step;
  }
}

function isConditional(step: Step): step is Conditional {
  return typeof step === "object" && step.kind === "when";
}
