import type { AnswerPiece } from "./dialect.ts";

/** The content of an answer that is not streamed: adjacent deltas of one kind are one piece. */
export function merged(pieces: readonly AnswerPiece[]): readonly AnswerPiece[] {
  const blocks: AnswerPiece[] = [];
  for (const piece of pieces) {
    const last = blocks.at(-1);
    if (last !== undefined && last.kind !== "toolCall" && piece.kind === last.kind) {
      blocks[blocks.length - 1] = { kind: last.kind, text: last.text + piece.text };
    } else {
      blocks.push(piece);
    }
  }
  return blocks;
}
