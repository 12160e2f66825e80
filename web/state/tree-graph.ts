import type { OutlineEntry } from "../../protocol/transcript-methods.ts";

// The tree of a session as rows with lanes, newest first, as `git log --graph` shows commits.

interface Common {
  readonly id: string;
  /** How deep its branch is within other branches. The lanes to its left pass by. */
  readonly lane: number;
  /** Whether it is on the branch that pi is on. */
  readonly isActive: boolean;
}

export interface EntryRow extends Common {
  readonly kind: "entry";
  readonly entry: OutlineEntry;
  /** Whether the row above continues its branch. */
  readonly hasNext: boolean;
  /** `line`: its parent is below in its lane. `join`: it begins a branch, and its parent is in the lane to its left. */
  readonly before: "line" | "join" | "none";
  /** How many branches go on from it. */
  readonly branches: number;
  /** Whether it is the last entry of the active branch. */
  readonly isHere: boolean;
  /** Whether its parent was not read. */
  readonly isCut: boolean;
  readonly labels: readonly string[];
}

/** A run of entries without a branch point. Its entries follow if it is open. */
export interface FoldRow extends Common {
  readonly kind: "fold";
  readonly count: number;
  readonly isOpen: boolean;
}

export type TreeRow = EntryRow | FoldRow;

export interface TreeOptions {
  /** The last entry of the active branch. */
  readonly leafId: string | null;
  /** Ids of runs that are open. */
  readonly opened: ReadonlySet<string>;
  /** Whether users' messages are never folded. */
  readonly showsUsers: boolean;
}

/** A shorter run is shown. */
const minRun = 3;

interface Node {
  readonly entry: OutlineEntry;
  readonly parent: Node | undefined;
  readonly children: Node[];
  /** The child in the same lane. */
  main: Node | undefined;
  /** How many entries go on from it, itself included. */
  size: number;
  isActive: boolean;
}

/** The entries of a session in the order in which they were written. */
export class EntryTree {
  readonly #nodes: ReadonlyMap<string, Node>;
  readonly #labels: ReadonlyMap<string, readonly string[]>;
  readonly #leafId: string | null;

  constructor(entries: readonly OutlineEntry[], leafId: string | null) {
    const nodes = new Map<string, Node>();
    // Of entries with the same id pi knows the last.
    const last = new Map(entries.map((entry) => [entry.entryId, entry]));
    for (const entry of entries) {
      const { entryId, parentId } = entry;
      if (last.get(entryId) !== entry) continue;
      // pi writes a parent before its child, so that there are no cycles.
      const parent = parentId === null ? undefined : nodes.get(parentId);
      const node: Node = { entry, parent, children: [], main: undefined, size: 1, isActive: false };
      nodes.set(entryId, node);
      parent?.children.push(node);
    }
    for (let node = nodes.get(leafId ?? ""); node !== undefined; node = node.parent) node.isActive = true;
    for (const node of [...nodes.values()].reverse()) {
      if (node.parent !== undefined) node.parent.size += node.size;
      node.main = node.children.reduce<Node | undefined>((main, child) => nearer(main, child), undefined);
    }
    this.#nodes = nodes;
    this.#leafId = leafId;
    this.#labels = labelsIn([...nodes.values()].map(({ entry }) => entry));
  }

  get size(): number {
    return this.#nodes.size;
  }

  /** How many entries nothing follows. */
  get leaves(): number {
    return [...this.#nodes.values()].filter(({ children }) => children.length === 0).length;
  }

  has(id: string): boolean {
    return this.#nodes.has(id);
  }

  entry(id: string): OutlineEntry | undefined {
    return this.#nodes.get(id)?.entry;
  }

  isActive(id: string): boolean {
    return this.#nodes.get(id)?.isActive === true;
  }

  /** The entry and those before it on its branch, from it on. */
  *from(id: string): Generator<OutlineEntry> {
    for (let node = this.#nodes.get(id); node !== undefined; node = node.parent) yield node.entry;
  }

  /** The end of a branch that has the entry: the active one, otherwise the one with most entries. */
  leafFrom(id: string): string {
    let node = this.#nodes.get(id);
    while (node?.main !== undefined) node = node.main;
    return node?.entry.entryId ?? id;
  }

  /** All rows, newest first. Each entry is in one row or fold. */
  rows({ opened, showsUsers }: Omit<TreeOptions, "leafId">): readonly TreeRow[] {
    const rows: TreeRow[] = [];
    let run: EntryRow[] = [];
    const endRun = (): void => {
      const oldest = run.at(-1);
      if (oldest !== undefined && run.length >= minRun) {
        const { id, lane, isActive } = oldest;
        // The oldest entry names it: later ones are added to the run.
        const foldId = `fold-${id}`;
        const isOpen = opened.has(foldId);
        rows.push({ kind: "fold", id: foldId, lane, isActive, count: run.length, isOpen });
        if (isOpen) for (const row of run) rows.push(row);
      } else rows.push(...run);
      run = [];
    };
    for (const row of this.#all()) {
      if (this.#isShown(row, showsUsers)) {
        endRun();
        rows.push(row);
      } else run.push(row);
    }
    endRun();
    return rows;
  }

  /** The rows of all entries. */
  #all(): readonly EntryRow[] {
    const rows: EntryRow[] = [];
    const roots = [...this.#nodes.values()].filter(({ parent }) => parent === undefined);
    // Oldest first, and the active tree last.
    const ordered = [...roots.filter(({ isActive }) => !isActive), ...roots.filter(({ isActive }) => isActive)];
    const waiting = ordered.map((node) => ({ node, lane: 0 })).reverse();
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      const { node, lane } = next;
      rows.push(this.#rowOf(node, lane));
      const { main, children } = node;
      if (main !== undefined) waiting.push({ node: main, lane });
      for (const child of children.toReversed()) if (child !== main) waiting.push({ node: child, lane: lane + 1 });
    }
    return rows.reverse();
  }

  #rowOf({ entry, parent, main, children, isActive }: Node, lane: number): EntryRow {
    const { entryId: id, parentId } = entry;
    return {
      kind: "entry",
      id,
      lane,
      isActive,
      entry,
      hasNext: main !== undefined,
      before: parent === undefined ? "none" : parent.main?.entry === entry ? "line" : "join",
      branches: children.length,
      isHere: id === this.#leafId,
      isCut: parent === undefined && parentId !== null,
      labels: this.#labels.get(id) ?? [],
    };
  }

  #isShown({ entry, hasNext, before, branches, isHere, labels }: EntryRow, showsUsers: boolean): boolean {
    if (!hasNext || before !== "line" || branches > 1 || isHere || labels.length > 0) return true;
    if (["compaction", "branch_summary", "model_change"].includes(entry.type)) return true;
    return showsUsers && entry.role === "user";
  }
}

/** The child that goes on in the lane of its parent. With the one that has most entries, n entries need about log2(n) lanes. */
function nearer(main: Node | undefined, child: Node): Node {
  if (main === undefined || child.isActive) return child;
  return !main.isActive && child.size >= main.size ? child : main;
}

function labelsIn(entries: readonly OutlineEntry[]): ReadonlyMap<string, readonly string[]> {
  const labels = new Map<string, readonly string[]>();
  for (const { type, targetId, text } of entries) {
    if (type !== "label" || targetId === undefined) continue;
    // Without a text it is removed.
    if (text === undefined) labels.delete(targetId);
    else labels.set(targetId, [text]);
  }
  return labels;
}
