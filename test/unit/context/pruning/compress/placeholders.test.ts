import { expect, test } from "vitest";
import { BlockLedger } from "../../../../../context/pruning/block-ledger.ts";
import { wholeText } from "../../../../../context/pruning/block-text.ts";
import { placeholderProblems, segmentsOf, withRequired } from "../../../../../context/pruning/compress/placeholders.ts";
import type { Segment } from "../../../../../context/pruning/record.ts";
import { Random } from "../../../../soak/random.ts";
import { textOf } from "./stage.ts";

test("a summary is split into text and blocks; a placeholder escaped with a backslash stays text", () => {
  expect(segmentsOf("See (b2).")).toEqual([{ text: "See " }, { block: "b2" }, { text: "." }]);
  expect(segmentsOf("(B02)(b3)")).toEqual([{ block: "b2" }, { block: "b3" }]);
  expect(segmentsOf("Written \\(b2), b2, (b), (b0), (bb2), ( b2 ).")).toEqual([
    { text: "Written (b2), b2, (b), (b0), (bb2), ( b2 )." },
  ]);
  expect(segmentsOf("\\\\(b9)")).toEqual([{ text: "\\(b9)" }]);
});

test("a summary of a megabyte of parentheses and backslashes is searched only once", () => {
  const hostile = "\\(b".repeat(300_000);
  expect(segmentsOf(hostile)).toEqual([{ text: hostile }]);
  expect(segmentsOf("(b1".repeat(300_000))).toHaveLength(1);
});

test("inserted text is never searched again: a summary that quotes (b9) keeps it through three levels", () => {
  const ledger = new BlockLedger();
  for (const id of ["e1", "e2", "e3", "e4"]) ledger.passed(id);
  const add = (id: string, entryIds: readonly string[], children: readonly string[], summary: string): void => {
    const [firstEntryId = ""] = entryIds;
    const record = { id, firstEntryId, lastEntryId: entryIds.at(-1) ?? "", entryIds, children, kept: [] };
    const body = segmentsOf(summary);
    ledger.made(
      { v: 1, topic: id, blocks: [{ ...record, body, tokensBefore: 1, tokensAfter: 1 }] },
      `r-${id}`,
      undefined,
    );
  };
  add("b1", ["e1"], [], "The user wrote \\\\(b9) and \\(b2).");
  add("b2", ["e1", "e2"], ["b1"], "First: (b1)");
  add("b3", ["e1", "e2", "e3"], ["b2"], "Then: (b2)");
  const tree = ledger.tree();
  const outermost = tree.find("b3");
  if (outermost === undefined) throw new Error("b3 was passed over.");
  expect(wholeText(outermost, tree)).toBe("Then: First: The user wrote \\(b9) and (b2).");
});

const words = ["one ", "(b1) ", "\\(b2) ", "(b2)", "(b3)", "(b17) ", "two\n", "(b3) ", "compressed b1 "];

test("in any summary, lenient mode places each block of the range once and loses no text; strict mode names each fault", () => {
  const random = new Random(20_261);
  for (let round = 0; round < 2_000; round += 1) {
    const ids = ["b1", "b2", "b3", "b4"].filter(() => random.chance(0.5));
    const summary = Array.from({ length: random.integer(0, 7) }, () => random.pick(words)).join("");
    const segments = segmentsOf(summary);
    const faults = placeholderProblems(segments, ids, "m001–m002");
    const repaired = withRequired(segments, ids);
    expect(blocksOf(repaired).toSorted()).toEqual(ids);
    expect(placeholderProblems(repaired, ids, "m001–m002")).toEqual([]);
    // Text stays in order, and only faults change anything.
    if (faults.length === 0) expect(textOf(repaired)).toBe(textOf(segments));
    const expected = segments.flatMap((segment) => ("text" in segment ? [segment.text] : []));
    let from = 0;
    const text = textOf(repaired);
    for (const part of expected) {
      from = text.indexOf(part, from);
      expect(from).toBeGreaterThanOrEqual(0);
      from += part.length;
    }
    const present = blocksOf(segments);
    const isExact = present.toSorted().join() === ids.join();
    expect(faults.length === 0).toBe(isExact);
    // Correct ones keep their position.
    const right = present.filter((id, at) => ids.includes(id) && present.indexOf(id) === at);
    expect(blocksOf(repaired).slice(0, right.length)).toEqual(right);
  }
});

function blocksOf(segments: readonly Segment[]): string[] {
  return segments.flatMap((segment) => ("block" in segment ? [segment.block] : []));
}
