import type { Token } from "marked";

/** One block of Markdown, such as a paragraph or a list. It never changes; views compare blocks by identity. */
export interface Block {
  /** Its place in the text, for keys. */
  readonly index: number;
  readonly token: Token;
}
