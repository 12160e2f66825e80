import type { Result } from "../protocol/methods.ts";
import { count } from "./format.ts";
import type { Output } from "./output.ts";
import { oneLine, table } from "./text.ts";

type Pruned = Result<"pruning/inspect">;

const shownBlocks = 10;

/** The blocks in a session's context, for a person, newest last. Blocks inside other blocks are not shown. */
export function blockLines(
  { blocks, mode, off }: Pruned,
  painter: Pick<Output, "paint" | "columns">,
): readonly string[] {
  const why = off === undefined ? [] : [oneLine(`Pruning is inactive now: ${off}`)];
  const who = mode === "manual" ? " The model waits for the user." : "";
  const current = blocks.filter(({ state }) => state === "active" || state === "inactive");
  if (current.length === 0) return [`Pruning is on; there are no blocks.${who}`, ...why];
  const rows = current.slice(-shownBlocks).map((block) => {
    const { id, startId, endId, tokensBefore, tokensAfter, state, isShortened, topic } = block;
    const range = startId === undefined || endId === undefined ? "" : `${startId}–${endId}`;
    const size = `${count(tokensBefore).padStart(9)} → ${count(tokensAfter)}`;
    const how = state === "inactive" ? "opened" : isShortened ? "shortened" : "";
    return ["", id, range, size, oneLine(topic), how];
  });
  const taken = blocks.length - current.length;
  const others = taken === 0 ? "" : `, and ${taken} inside other blocks or a compaction`;
  const head = `Blocks: ${current.length}${others}.${who} The newest, with tokens before and after:`;
  return [painter.paint("bold", head), ...table(rows, painter.columns), ...why];
}
