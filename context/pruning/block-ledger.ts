import type { Block, BlockState, BlockTree } from "./pruning-services.ts";
import type { BlockOperation, BlockRecord, BlocksRecord } from "./record.ts";

interface Node extends Omit<Block, "state"> {
  /** Positions of its first and last entry on the branch. */
  readonly first: number;
  readonly last: number;
  /** The user has decompressed it. */
  isOff: boolean;
}

/** Entries dropped by a compaction. */
interface Dropped {
  readonly before: number;
  readonly compactionId: string;
}

/** Folds the block records of a branch, entry by entry. Records that contradict earlier ones are ignored. */
export class BlockLedger {
  readonly #places = new Map<string, number>();
  readonly #nodes = new Map<string, Node>();
  /** The block that covers an entry. */
  readonly #over = new Map<string, string>();
  readonly #dropped: Dropped[] = [];
  #answer: string | undefined;
  #tree: BlockTree | undefined;

  passed(entryId: string): void {
    this.#places.set(entryId, this.#places.size);
  }

  answered(entryId: string): void {
    this.#answer = entryId;
  }

  compacted(compactionId: string, firstKeptEntryId: string | null): void {
    const at = this.#places.get(compactionId) ?? 0;
    const before = firstKeptEntryId === null ? at : (this.#places.get(firstKeptEntryId) ?? at);
    this.#dropped.push({ before, compactionId });
    if (this.#nodes.size > 0) this.#tree = undefined;
  }

  /** Returns whether the record was accepted. */
  made({ topic, blocks }: BlocksRecord, entryId: string, callId: string | undefined): boolean {
    const covered = new Map<string, string>();
    const nodes: Node[] = [];
    for (const record of blocks) {
      if (nodes.some(({ id }) => id === record.id) || !this.#fits(record, covered)) return false;
      for (const id of record.entryIds) covered.set(id, record.id);
      const call = callId === undefined || this.#answer === undefined ? {} : { callId, answerId: this.#answer };
      const first = this.#places.get(record.firstEntryId) ?? 0;
      const last = this.#places.get(record.lastEntryId) ?? 0;
      nodes.push({ ...record, topic, entryId, first, last, isOff: false, ...call });
    }
    for (const node of nodes) this.#nodes.set(node.id, node);
    for (const [id, over] of covered) this.#over.set(id, over);
    this.#tree = undefined;
    return true;
  }

  /** Returns whether the operation was accepted. */
  operated({ operation, block: id }: Omit<BlockOperation, "v">): boolean {
    // A file can contain thousands of operations, so the map is not copied.
    if (this.#made(this.#over).hinders(operation, id) !== undefined) return false;
    const node = this.#nodes.get(id) as Node;
    node.isOff = operation === "decompress";
    for (const entryId of node.entryIds) {
      if (node.isOff) this.#over.delete(entryId);
      else this.#over.set(entryId, id);
    }
    if (node.isOff) for (const child of node.children) this.#expose(child);
    this.#tree = undefined;
    return true;
  }

  /** The same object until something changes. */
  tree(): BlockTree {
    this.#tree ??= this.#made(new Map(this.#over));
    return this.#tree;
  }

  /** Whether the record covers a range of the branch in order and contains only whole blocks. */
  #fits(
    { id, entryIds, firstEntryId, lastEntryId, children, body }: BlockRecord,
    covered: Map<string, string>,
  ): boolean {
    if (this.#nodes.has(id) || entryIds[0] !== firstEntryId || entryIds.at(-1) !== lastEntryId) return false;
    const within = new Set(children);
    let before = -1;
    for (const entryId of entryIds) {
      const at = this.#places.get(entryId);
      const over = this.#over.get(entryId);
      if (at === undefined || at <= before || covered.has(entryId)) return false;
      if (over !== undefined && !within.has(over)) return false;
      before = at;
    }
    const entries = new Set(entryIds);
    const isWhole = (child: string): boolean => {
      const node = this.#nodes.get(child);
      return node?.entryIds.every((one) => entries.has(one) && this.#over.get(one) === child) === true;
    };
    const named = body.flatMap((segment) => ("block" in segment ? [segment.block] : []));
    const isOnce = new Set(named).size === named.length && within.size === children.length;
    return isOnce && children.every(isWhole) && named.every((child) => within.has(child));
  }

  #expose(id: string): void {
    const node = this.#nodes.get(id);
    if (node === undefined) return;
    if (node.isOff) for (const child of node.children) this.#expose(child);
    else for (const entryId of node.entryIds) this.#over.set(entryId, id);
  }

  #made(over: ReadonlyMap<string, string>): BlockTree {
    // A block that covers its first entry covers all of its entries.
    const visible = [...this.#nodes.values()].filter(({ id, firstEntryId }) => over.get(firstEntryId) === id);
    const parents = new Map<string, string>();
    const pending = visible.map(({ id }) => id);
    for (let id = pending.pop(); id !== undefined; id = pending.pop()) {
      for (const child of this.#nodes.get(id)?.children ?? []) {
        if (parents.has(child)) continue;
        parents.set(child, id);
        pending.push(child);
      }
    }
    // Only the newest compaction determines the context.
    const keptFrom = this.#dropped.at(-1)?.before ?? 0;
    const stateOf = ({ id, last, isOff }: Node): BlockState => {
      const parent = parents.get(id);
      if (parent !== undefined) return { kind: "consumed", parent };
      const dropped = this.#dropped.find(({ before }) => last < before);
      if (dropped !== undefined && last < keptFrom) return { kind: "checkpointed", compactionId: dropped.compactionId };
      return { kind: isOff ? "inactive" : "active" };
    };
    const all = [...this.#nodes.values()]
      .map((node): Block => {
        const { first: _, last: __, isOff: ___, ...block } = node;
        return { ...block, state: stateOf(node) };
      })
      .toSorted((a, b) => numberIn(a) - numberIn(b));
    const cut = [...this.#nodes.values()].filter(({ first }) => first < keptFrom).map(({ id }) => id);
    return new Tree(all, over, new Set(cut));
  }
}

class Tree implements BlockTree {
  readonly all: readonly Block[];
  readonly active: readonly Block[];
  readonly #byId: ReadonlyMap<string, Block>;
  readonly #over: ReadonlyMap<string, string>;
  /** Blocks with at least one entry outside the context. */
  readonly #cut: ReadonlySet<string>;

  constructor(all: readonly Block[], over: ReadonlyMap<string, string>, cut: ReadonlySet<string>) {
    this.all = all;
    this.active = all.filter(({ state }) => state.kind === "active");
    this.#byId = new Map(all.map((block) => [block.id, block]));
    this.#over = over;
    this.#cut = cut;
  }

  find(id: string): Block | undefined {
    return this.#byId.get(id);
  }

  over(entryId: string): Block | undefined {
    const id = this.#over.get(entryId);
    const block = id === undefined ? undefined : this.#byId.get(id);
    return block?.state.kind === "active" ? block : undefined;
  }

  holder(id: string): Block | undefined {
    let block = this.#byId.get(id);
    for (let steps = 0; block?.state.kind === "consumed" && steps <= this.all.length; steps += 1) {
      block = this.#byId.get(block.state.parent);
    }
    return block?.state.kind === "active" ? block : undefined;
  }

  hinders(operation: BlockOperation["operation"], id: string): string | undefined {
    const block = this.#byId.get(id);
    if (block === undefined) return `${id} does not exist.`;
    const { state, entryIds } = block;
    if (state.kind === "checkpointed") return `${id} has left the context with a compaction.`;
    if (state.kind === "consumed") return `${id} is part of ${this.holder(id)?.id ?? state.parent}.`;
    if (operation === "decompress" && state.kind === "inactive") return `${id} is not active.`;
    if (operation === "recompress" && state.kind === "active") return `${id} is active.`;
    if (this.#cut.has(id)) return `A part of what ${id} covers has left the context with a compaction.`;
    if (operation === "decompress") return undefined;
    const within = this.#below(block);
    const other = entryIds
      .map((entryId) => this.over(entryId)?.id)
      .find((over) => over !== undefined && !within.has(over));
    return other === undefined ? undefined : `${other} covers a part of ${id}.`;
  }

  #below(block: Block): ReadonlySet<string> {
    const found = new Set<string>();
    const pending = [...block.children];
    for (let id = pending.pop(); id !== undefined; id = pending.pop()) {
      if (found.has(id)) continue;
      found.add(id);
      pending.push(...(this.#byId.get(id)?.children ?? []));
    }
    return found;
  }
}

function numberIn({ id }: Block): number {
  return Number(id.slice(1));
}
