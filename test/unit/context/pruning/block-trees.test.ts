import { expect, test } from "vitest";
import { BlockFold } from "../../../../context/pruning/block-fold.ts";
import { wholeText } from "../../../../context/pruning/block-text.ts";
import type { BlockTree } from "../../../../context/pruning/pruning-services.ts";
import { Random } from "../../../soak/random.ts";
import { Branch, blockOf } from "./branch.ts";

/** A session with random operations on blocks, some of them invalid. */
class Session {
  readonly branch = new Branch();
  readonly #random: Random;
  readonly #tree: () => BlockTree;
  #blocks = 0;

  constructor(seed: number, tree: (branch: Branch) => BlockTree) {
    this.#random = new Random(seed);
    this.#tree = () => tree(this.branch);
    for (let at = 0; at < 6; at += 1) this.branch.user("Before.");
  }

  step(): void {
    const steps = [() => this.#say(), () => this.#compress(), () => this.#compress(), () => this.#operate()];
    const step = this.#random.next() < 0.04 ? () => this.#leave() : steps[this.#below(steps.length)];
    step?.();
  }

  #say(): void {
    if (this.#random.next() < 0.5) this.branch.user("More.");
    else this.branch.call("read", { path: "a" }, "Text.");
  }

  /** Mostly of whole blocks, and sometimes of parts. */
  #compress(): void {
    const tree = this.#tree();
    const entries = this.branch.messages.map(({ entryId }) => entryId);
    let from = this.#below(entries.length - 1);
    let to = Math.min(entries.length - 1, from + this.#below(8));
    const over = () => [...new Set(entries.slice(from, to + 1).flatMap((id) => tree.over(id) ?? []))];
    if (this.#random.next() < 0.9) {
      for (const { firstEntryId, lastEntryId } of over()) {
        from = Math.min(from, entries.indexOf(firstEntryId));
        to = Math.max(to, entries.indexOf(lastEntryId));
      }
    }
    const children = over().map((block) => ({ block: block.id }));
    const body = [{ text: `Words ${this.#blocks}.` }, ...(this.#random.next() < 0.9 ? children : children.slice(1))];
    const fields = this.#random.next() < 0.9 ? { children: children.map(({ block }) => block) } : {};
    this.#blocks += 1;
    this.branch.compress("T", blockOf(`b${this.#blocks}`, entries.slice(from, to + 1), body, fields));
  }

  #operate(): void {
    const operation = this.#random.next() < 0.5 ? "decompress" : "recompress";
    this.branch.operate(operation, `b${1 + this.#below(this.#blocks + 1)}`);
  }

  #leave(): void {
    const { entries, messages } = this.branch;
    if (this.#random.next() < 0.7) this.branch.go(entries[this.#below(entries.length)]?.id ?? "");
    else this.branch.compact(messages[this.#below(messages.length)]?.entryId ?? "");
  }

  #below(end: number): number {
    return this.#random.integer(0, Math.max(1, end) - 1);
  }
}

function factsOf(tree: BlockTree, branch: Branch) {
  const over = branch.messages.map(({ entryId }) => tree.over(entryId)?.id);
  return { blocks: tree.all.map(({ id, state }) => [id, state]), over };
}

/** Violated invariants of a tree. */
function flawsIn(tree: BlockTree, branch: Branch): string[] {
  const there = new Set(branch.messages.map(({ entryId }) => entryId));
  return tree.all.flatMap((block) => {
    const { id, entryIds, state } = block;
    const shown = new Set(entryIds.map((entryId) => tree.over(entryId)?.id));
    const parent = state.kind === "consumed" ? tree.find(state.parent) : undefined;
    const inParent = new Set(parent?.entryIds);
    const words = wholeText(block, tree).match(/Words \d+\./gu) ?? [];
    const flaws = {
      "is active and does not stand for all that it covers":
        state.kind === "active" && (shown.size > 1 || !shown.has(id)),
      "is not active and stands for something": state.kind !== "active" && shown.has(id),
      "is no child of who has consumed it": parent !== undefined && !parent.children.includes(id),
      "is not within who has consumed it": parent !== undefined && !entryIds.every((entryId) => inParent.has(entryId)),
      "covers what is not there": !entryIds.every((entryId) => there.has(entryId)),
      "says something twice": new Set(words).size < words.length,
    };
    return Object.entries(flaws).flatMap(([flaw, holds]) => (holds ? [`${id} ${flaw}`] : []));
  });
}

test("blocks stay consistent under any operations, and a new pi finds the same blocks as the old one", () => {
  const met = new Set<string>();
  for (let seed = 0; seed < 40; seed += 1) {
    const fold = new BlockFold();
    const made = new Session(seed, ({ context }) => fold.on(context.sessionManager));
    for (let at = 0; at < 60; at += 1) {
      made.step();
      if (at % 4 !== 0) continue;
      const session = made.branch.context.sessionManager;
      const tree = fold.on(session);
      const flaws = flawsIn(tree, made.branch);
      const facts = JSON.stringify(factsOf(tree, made.branch));
      if (flaws.length > 0) expect({ seed, at, flaws }).toEqual({ seed, at, flaws: [] });
      const anew = JSON.stringify(factsOf(new BlockFold().on(session), made.branch));
      if (facts !== anew) expect({ seed, at, facts }).toEqual({ seed, at, facts: anew });
      for (const { state } of tree.all) met.add(state.kind);
    }
  }
  expect([...met].toSorted()).toEqual(["active", "checkpointed", "consumed", "inactive"]);
});

test("decompressing and immediately recompressing changes nothing", () => {
  let tried = 0;
  for (let seed = 0; seed < 30; seed += 1) {
    const fold = new BlockFold();
    const made = new Session(seed, ({ context }) => fold.on(context.sessionManager));
    for (let at = 0; at < 40; at += 1) made.step();
    const tree = () => fold.on(made.branch.context.sessionManager);
    const before = factsOf(tree(), made.branch);
    for (const { id } of tree().active) {
      if (tree().hinders("decompress", id) !== undefined) continue;
      tried += 1;
      made.branch.operate("decompress", id);
      expect(tree().find(id)?.state.kind).toBe("inactive");
      expect(tree().hinders("recompress", id)).toBeUndefined();
      made.branch.operate("recompress", id);
      expect(factsOf(tree(), made.branch)).toEqual(before);
    }
  }
  expect(tried).toBeGreaterThan(50);
});
