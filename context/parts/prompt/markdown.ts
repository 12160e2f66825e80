/** A piece of a Markdown text. The pieces of a text, one after the other, are the text. */
export interface MarkdownPiece {
  readonly kind: "heading" | "paragraph" | "blank";
  /** With its line ends. */
  readonly text: string;
  /** Of a heading, from 1 to 6. */
  readonly level: number;
  /** Of a heading: its words. */
  readonly title: string;
}

/**
 * Cuts a text at its headings and empty lines. What stands between fences stays in one piece. Lines that only look like
 * Markdown do no harm: nothing is lost or changed.
 */
export function markdownPieces(text: string): readonly MarkdownPiece[] {
  const pieces: MarkdownPiece[] = [];
  let open: string[] = [];
  let fence: string | undefined;
  const close = (): void => {
    if (open.length > 0) pieces.push({ kind: "paragraph", text: open.join(""), level: 0, title: "" });
    open = [];
  };
  for (const line of linesOf(text)) {
    const bare = line.trimEnd();
    if (fence !== undefined) {
      open.push(line);
      if (closesFence(bare, fence)) fence = undefined;
      continue;
    }
    const heading = headingOf(bare, open);
    if (heading !== undefined) {
      const above = heading.isUnderlined ? (open.pop() ?? "") : "";
      close();
      pieces.push({ kind: "heading", text: above + line, level: heading.level, title: heading.title });
      continue;
    }
    if (bare === "") {
      close();
      const last = pieces.at(-1);
      if (last?.kind === "blank") pieces[pieces.length - 1] = { ...last, text: last.text + line };
      else pieces.push({ kind: "blank", text: line, level: 0, title: "" });
      continue;
    }
    fence = fenceAt.exec(bare)?.[1];
    open.push(line);
  }
  close();
  return pieces;
}

const fenceAt = /^ {0,3}(`{3,}|~{3,})/;
const headingAt = /^ {0,3}(#{1,6})(?:[ \t]+(.*))?$/;
/** What a heading that is marked by the line below it may begin with: no item, no quote, no table. */
const plainStart = /^ {0,3}[\p{L}\p{N}_"'([]/u;

function headingOf(
  line: string,
  above: readonly string[],
): { readonly level: number; readonly title: string; readonly isUnderlined: boolean } | undefined {
  const marked = headingAt.exec(line);
  if (marked !== null) {
    const title = (marked[2] ?? "").replace(/(?:^|[ \t])#+$/, "").trim();
    return { level: (marked[1] ?? "").length, title, isUnderlined: false };
  }
  const [only] = above;
  if (only === undefined || above.length > 1 || !plainStart.test(only)) return undefined;
  if (!/^ {0,3}(?:=+|-{2,})$/.test(line)) return undefined;
  return { level: line.trim().startsWith("=") ? 1 : 2, title: only.trim(), isUnderlined: true };
}

function closesFence(line: string, fence: string): boolean {
  const closing = /^ {0,3}(`+|~+)$/.exec(line)?.[1];
  return closing !== undefined && closing[0] === fence[0] && closing.length >= fence.length;
}

/** The lines of a text with their ends. */
export function linesOf(text: string): string[] {
  return text.split(/(?<=\n)/).filter((line) => line !== "");
}

/** The text under a heading, with it, up to the next heading that is not below it. */
export function sectionOf(pieces: readonly MarkdownPiece[], at: number): string {
  return pieces
    .slice(at, sectionEnd(pieces, at))
    .map(({ text }) => text)
    .join("");
}

/** Where the section of the heading at this place ends. */
export function sectionEnd(pieces: readonly MarkdownPiece[], at: number): number {
  const level = pieces[at]?.level ?? 0;
  for (let next = at + 1; next < pieces.length; next += 1) {
    const piece = pieces[next];
    if (piece?.kind === "heading" && piece.level <= level) return next;
  }
  return pieces.length;
}
