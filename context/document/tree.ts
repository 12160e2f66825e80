import type { ContextNode } from "./document.ts";
import { contextInvalid, quoted } from "./faults.ts";

export function isTool({ role }: ContextNode): boolean {
  return role === "toolCall" || role === "toolResult";
}

/** The nodes of a document by position, with their links. */
export class ContextTree {
  readonly nodes: readonly ContextNode[];
  readonly #places = new Map<string, number>();
  /** By position: first child that is a tool node or an assistant, and its next sibling; -1: none. */
  readonly #firstChild: Int32Array;
  readonly #nextSibling: Int32Array;

  readonly #isUntimed: (node: ContextNode) => boolean;

  /** `isUntimed`: whether a node was given without a time, so that its time is meaningless. */
  constructor(nodes: readonly ContextNode[], isUntimed: (node: ContextNode) => boolean = () => false) {
    this.nodes = nodes;
    this.#isUntimed = isUntimed;
    for (let place = 0; place < nodes.length; place += 1) this.#places.set(this.at(place).id, place);
    this.#firstChild = new Int32Array(nodes.length).fill(-1);
    this.#nextSibling = new Int32Array(nodes.length).fill(-1);
    for (let place = nodes.length - 1; place >= 0; place -= 1) this.#link(place);
  }

  at(place: number): ContextNode {
    const node = this.nodes[place];
    if (node === undefined) throw new RangeError(`no node at ${place}`);
    return node;
  }

  isUntimed(place: number): boolean {
    return this.#isUntimed(this.at(place));
  }

  parentOf({ parentId }: ContextNode): ContextNode | undefined {
    const place = parentId === null ? undefined : this.#places.get(parentId);
    return place === undefined ? undefined : this.nodes[place];
  }

  /** Children of a node that are tool nodes or assistants, in document order. */
  *followers(place: number): Generator<number> {
    for (let child = this.#firstChild[place] ?? -1; child !== -1; child = this.#nextSibling[child] ?? -1) yield child;
  }

  /**
   * Returns the positions from the root to a node. Throws `context_invalid`: `unknown_node`; `missing_parent`, because
   * the walk would lose earlier nodes silently; `cycle`.
   */
  pathTo(id: string): readonly number[] {
    const path: number[] = [];
    const seen = new Set<number>();
    let place = this.#places.get(id);
    if (place === undefined) throw contextInvalid("unknown_node", `Node ${quoted(id)} is not in the document.`, id);
    while (true) {
      const node = this.at(place);
      if (seen.has(place)) throw contextInvalid("cycle", `Node ${quoted(node.id)} is its own ancestor.`, node.id);
      seen.add(place);
      path.push(place);
      if (node.parentId === null) return path.reverse();
      place = this.#places.get(node.parentId);
      if (place === undefined) {
        const words = `Node ${quoted(node.id)} has parent ${quoted(node.parentId)}, which is not in the document.`;
        throw contextInvalid("missing_parent", words, node.id);
      }
    }
  }

  #link(place: number): void {
    const node = this.at(place);
    if (node.parentId === null || !(isTool(node) || node.role === "assistant")) return;
    const parent = this.#places.get(node.parentId);
    if (parent === undefined) return;
    this.#nextSibling[place] = this.#firstChild[parent] ?? -1;
    this.#firstChild[parent] = place;
  }
}
