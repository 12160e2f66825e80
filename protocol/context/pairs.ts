import type { ContextItem } from "./document.ts";
import type { SoundCall } from "./repair-assistant.ts";

/** A result that has come, by its place among the items. */
export interface Arrival {
  readonly item: ContextItem;
  readonly index: number;
}

/** A call with the result that it has so far. */
export interface Use {
  readonly turn: Turn;
  readonly call: SoundCall;
  /** What the call is called now. */
  readonly id: string;
  result?: Arrival | undefined;
  /** Whether the result stood before the call. */
  isEarly: boolean;
}

/** A message with the results directly behind it. */
export interface Turn {
  readonly item: ContextItem;
  readonly index: number;
  readonly uses: Use[];
}

interface Queue {
  readonly turn: Turn;
  readonly uses: Use[];
  answered: number;
}

export type Outcome =
  | { readonly kind: "paired"; readonly use: Use; readonly replaced?: Arrival }
  /** There is no such call so far; `replaced`: another result that waits for it too. */
  | { readonly kind: "waiting"; readonly replaced?: Arrival };

/** Finds the call of each result by the id that both came with. */
export class Pairs {
  /** By id the uses in the latest message that has any: a result is for no earlier one. */
  readonly #latest = new Map<string, Queue>();
  /** Results whose call has not come. */
  readonly #waiting = new Map<string, Arrival>();

  /** A call; a result that has waited for it becomes its own until another comes. */
  add(use: Use): void {
    const { originalId } = use.call;
    const queue = this.#latest.get(originalId);
    if (queue?.turn === use.turn) queue.uses.push(use);
    else this.#latest.set(originalId, { turn: use.turn, uses: [use], answered: 0 });
    const early = this.#waiting.get(originalId);
    if (early === undefined) return;
    this.#waiting.delete(originalId);
    use.result = early;
    use.isEarly = true;
  }

  answer(id: string, arrival: Arrival): Outcome {
    const queue = this.#latest.get(id);
    if (queue === undefined) {
      const replaced = this.#waiting.get(id);
      this.#waiting.set(id, arrival);
      return { kind: "waiting", ...(replaced === undefined ? {} : { replaced }) };
    }
    // In one message the results of one id are for its calls in turn; one too many replaces the last.
    const use = queue.uses[Math.min(queue.answered, queue.uses.length - 1)];
    if (use === undefined) throw new RangeError("a queue of calls is never empty");
    queue.answered += 1;
    const { result: replaced } = use;
    use.result = arrival;
    return { kind: "paired", use, ...(replaced === undefined ? {} : { replaced }) };
  }

  /** Results whose call never came. */
  get orphans(): Iterable<Arrival> {
    return this.#waiting.values();
  }
}
