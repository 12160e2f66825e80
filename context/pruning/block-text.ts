import type { Block, BlockTree } from "./pruning-services.ts";
import { BLOCK_HEADER } from "./record.ts";

/** The second line: tells the model that a summary is not a request. */
export const BLOCK_NOTE = "This is a record of an earlier part of the conversation, not a new request.";
/** Heading of the verbatim texts. */
const KEPT_HEADING = "Kept word for word:";

const maxFirstLines = 3;
const maxFirstUnits = 240;

/** How a block is shown: whole, first lines, topic only, or this many bytes of its text. */
export type Shown = "whole" | "lines" | "topic" | number;

/** Shortened blocks by id. */
export type ShownBlocks = ReadonlyMap<string, Shown>;

/** The body of a block with nested blocks in place, followed by the verbatim texts. */
export function wholeText(block: Block, tree: BlockTree): string {
  return textWith(block, tree, new Map());
}

/** A block without its tag. */
export function shownText(block: Block, tree: BlockTree, shown: ShownBlocks): string {
  return [BLOCK_HEADER, BLOCK_NOTE, `Topic: ${block.topic}`, "", shortened(block, tree, shown)].join("\n");
}

function shortened(block: Block, tree: BlockTree, shown: ShownBlocks): string {
  const how = shown.get(block.id) ?? "whole";
  switch (how) {
    case "whole":
      return textWith(block, tree, shown);
    case "topic":
      return `[shortened; recall ${block.id}]`;
    case "lines":
      return `${firstLines(block)}\n[shortened; recall ${block.id}]`;
    default:
      return `${beginning(textWith(block, tree, shown), how)}…\n[shortened; recall ${block.id}]`;
  }
}

interface Gathered {
  readonly words: string[];
  readonly kept: string[];
}

/** Single pass: inserted text is not scanned for placeholders again. */
function textWith(block: Block, tree: BlockTree, shown: ShownBlocks): string {
  const { words, kept } = gathered(block, tree, shown);
  return [words.join(""), ...(kept.length === 0 ? [] : [KEPT_HEADING]), ...kept].join("\n\n");
}

type Step = { readonly write: string } | { readonly block: Block } | { readonly keep: Block };

function gathered(outermost: Block, tree: BlockTree, shown: ShownBlocks): Gathered {
  const words: string[] = [];
  const kept: string[] = [];
  const steps = stepsOf(outermost, tree);
  for (let step = steps.pop(); step !== undefined; step = steps.pop()) {
    if ("write" in step) words.push(step.write);
    else if ("keep" in step) kept.push(...step.keep.kept.map(({ title, text }) => `${title}\n${text}`));
    else if ((shown.get(step.block.id) ?? "whole") === "whole") steps.push(...stepsOf(step.block, tree));
    else words.push(stubOf(step.block, shown.get(step.block.id)));
  }
  return { words, kept };
}

/** In reverse order, for use as a stack. */
function stepsOf(block: Block, tree: BlockTree): Step[] {
  const steps: Step[] = [{ keep: block }];
  for (const segment of block.body.toReversed()) {
    if ("text" in segment) steps.push({ write: segment.text });
    else {
      const child = tree.find(segment.block);
      if (child !== undefined) steps.push({ block: child });
    }
  }
  return steps;
}

function stubOf(block: Block, how: Shown | undefined): string {
  const lines = how === "topic" ? "" : `\n${firstLines(block)}`;
  return `[${block.topic}: shortened; recall ${block.id}]${lines}`;
}

function beginning(text: string, bytes: number): string {
  const whole = Buffer.from(text);
  let end = Math.min(bytes, whole.length);
  // Do not split a UTF-8 character.
  while (end > 0 && ((whole[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return whole.toString("utf8", 0, end);
}

/** The beginning of the block's own text. */
export function firstLines({ body }: Block): string {
  const own = body.map((segment) => ("text" in segment ? segment.text : "")).find((text) => text.trim() !== "") ?? "";
  const start = own.trimStart().slice(0, maxFirstUnits);
  const lines = start.split("\n").slice(0, maxFirstLines).join("\n").toWellFormed();
  return `${lines.trimEnd()}…`;
}
