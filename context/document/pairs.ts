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

/** The uses of one message that share an id or a name. */
interface Queue {
  readonly turn: Turn;
  readonly uses: Use[];
  /** All before have a result that stands behind them. */
  next: number;
}

/** Results that wait for calls of one id. */
interface Waiting {
  readonly arrivals: Arrival[];
  next: number;
  /** The last call that has taken one. */
  taker?: Use;
}

export type Outcome =
  | { readonly kind: "paired"; readonly use: Use; readonly replaced?: Arrival }
  /** There is no such call so far. */
  | { readonly kind: "waiting" };

/** Finds the call of each result by the id that both came with; where that is empty, by the tool's name. */
export class Pairs {
  /** By id the uses in the latest message that has any: a result is for no earlier one. */
  readonly #latest = new Map<string, Queue>();
  /** By tool the uses without an id, for each message that has any. */
  readonly #unnamed = new Map<string, Queue[]>();
  /** By id, without one by tool: results whose call had not come. */
  readonly #waiting = new Map<string, Waiting>();

  /** A call; a result that has waited for it becomes its own until another comes. */
  add(use: Use): void {
    const { originalId, originalName } = use.call;
    const queue = this.#latest.get(originalId);
    if (queue?.turn === use.turn) queue.uses.push(use);
    else this.#latest.set(originalId, { turn: use.turn, uses: [use], next: 0 });
    if (originalId === "") this.#addUnnamed(use);
    const waiting = this.#waiting.get(waitingKey(originalId, originalName));
    const early = waiting?.arrivals[waiting.next];
    if (waiting === undefined || early === undefined) return;
    waiting.next += 1;
    waiting.taker = use;
    use.result = early;
    use.isEarly = true;
  }

  answer(id: string, arrival: Arrival): Outcome {
    const { toolName } = arrival.item;
    const use = this.#unnamedFor(id, toolName) ?? useFor(this.#latest.get(id), toolName);
    if (use === undefined) {
      this.#wait(id, arrival);
      return { kind: "waiting" };
    }
    const { result: replaced } = use;
    use.result = arrival;
    return { kind: "paired", use, ...(replaced === undefined ? {} : { replaced }) };
  }

  /** Results that no call has taken; `use`: the one that has taken others of the same id. */
  *left(): Generator<{ readonly arrival: Arrival; readonly use: Use | undefined }> {
    for (const { arrivals, next, taker } of this.#waiting.values())
      for (let place = next; place < arrivals.length; place += 1)
        yield { arrival: arrivals[place] as Arrival, use: taker };
  }

  #addUnnamed(use: Use): void {
    const { originalName } = use.call;
    const queues = this.#unnamed.get(originalName) ?? [];
    if (queues.length === 0) this.#unnamed.set(originalName, queues);
    const last = queues.at(-1);
    if (last?.turn === use.turn) last.uses.push(use);
    else queues.push({ turn: use.turn, uses: [use], next: 0 });
  }

  /** In the nearest message with an open call of that tool its first one. */
  #unnamedFor(id: string, toolName: string | undefined): Use | undefined {
    const queues = id === "" && toolName !== undefined ? this.#unnamed.get(toolName) : undefined;
    for (let queue = queues?.at(-1); queue !== undefined; queue = queues?.at(-1)) {
      const use = nextOf(queue);
      if (use !== undefined) return use;
      queues?.pop();
    }
    return undefined;
  }

  #wait(id: string, arrival: Arrival): void {
    const key = waitingKey(id, arrival.item.toolName ?? "");
    const waiting = this.#waiting.get(key);
    if (waiting === undefined) this.#waiting.set(key, { arrivals: [arrival], next: 0 });
    else waiting.arrivals.push(arrival);
  }
}

function waitingKey(id: string, toolName: string): string {
  return id === "" ? `tool:${toolName}` : `id:${id}`;
}

function isOpen({ result, isEarly }: Use): boolean {
  return result === undefined || isEarly;
}

function nextOf(queue: Queue): Use | undefined {
  for (; queue.next < queue.uses.length; queue.next += 1) {
    const use = queue.uses[queue.next] as Use;
    if (isOpen(use)) return use;
  }
  return undefined;
}

/**
 * In one message the results of one id are for its calls of the same tool in turn, where there are any, else for all of
 * them; one too many replaces the last.
 */
function useFor(queue: Queue | undefined, toolName: string | undefined): Use | undefined {
  if (queue === undefined) return undefined;
  const { uses } = queue;
  if (uses.length === 1) return uses[0];
  const isNamed = ({ call }: Use): boolean => call.originalName === toolName;
  const last = uses.findLast(isNamed);
  if (last === undefined) return nextOf(queue) ?? uses.at(-1);
  return uses.find((use) => isNamed(use) && isOpen(use)) ?? last;
}
