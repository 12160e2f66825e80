import type { ContextItem } from "./document.ts";
import type { SoundCall } from "./repair-assistant.ts";

/** A result, with its position among the items. */
export interface Arrival {
  readonly item: ContextItem;
  readonly index: number;
}

/** A call with its current result. */
export interface Use {
  readonly turn: Turn;
  readonly call: SoundCall;
  /** Current id of the call. */
  readonly id: string;
  result?: Arrival | undefined;
  /** Whether the result came before the call. */
  isEarly: boolean;
}

/** A message with the results directly after it. */
export interface Turn {
  readonly item: ContextItem;
  readonly index: number;
  readonly uses: Use[];
}

/** Calls of one message with the same id or name. */
interface Queue {
  readonly turn: Turn;
  readonly uses: Use[];
  /** All earlier ones have a result after them. */
  next: number;
}

/** Results that wait for calls with one id. */
interface Waiting {
  readonly arrivals: Arrival[];
  next: number;
  /** The last call that took one. */
  taker?: Use;
}

export type Outcome =
  | { readonly kind: "paired"; readonly use: Use; readonly replaced?: Arrival }
  /** No such call yet. */
  | { readonly kind: "waiting" };

/** Matches each result to its call by their original id, or by tool name if the id is empty. */
export class Pairs {
  /** Calls by id in the latest message that has any; results never match earlier messages. */
  readonly #latest = new Map<string, Queue>();
  /** Calls without an id by tool, for each message that has any. */
  readonly #unnamed = new Map<string, Queue[]>();
  /** Results before their call, by id, or by tool without an id. */
  readonly #waiting = new Map<string, Waiting>();

  /** Adds a call. It takes a result that waited for it, until another one comes. */
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

  /** Yields the unmatched results; `use`: the call that took others with the same id. */
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

  /** Returns the first open call of the tool in the nearest message with one. */
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
 * Within a message, results with the same id go to its calls of the same tool in order, or to all calls if there are
 * none; a surplus result replaces the last.
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
