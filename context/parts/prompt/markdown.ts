/** A piece of a Markdown text. All pieces joined are the text. */
export interface MarkdownPiece {
  readonly kind: "heading" | "paragraph" | "blank";
  /** Includes line ends. */
  readonly text: string;
  /** The level of a heading, 1 to 6. */
  readonly level: number;
  /** The text of a heading. */
  readonly title: string;
}

/**
 * Splits a text at headings and empty lines. Fenced code stays in one piece. Misread Markdown does no harm, because no
 * text is lost or changed.
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
/** A heading underlined by the next line must not begin like a list item, a quote or a table. */
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

/** Returns the lines of a text with their line ends. */
export function linesOf(text: string): string[] {
  return text.split(/(?<=\n)/).filter((line) => line !== "");
}

/** Returns a heading and the text below it, up to the next heading of the same or a higher level. */
export function sectionOf(pieces: readonly MarkdownPiece[], at: number): string {
  return pieces
    .slice(at, sectionEnd(pieces, at))
    .map(({ text }) => text)
    .join("");
}

/** Returns the end of the section that begins at this heading. */
export function sectionEnd(pieces: readonly MarkdownPiece[], at: number): number {
  const level = pieces[at]?.level ?? 0;
  for (let next = at + 1; next < pieces.length; next += 1) {
    const piece = pieces[next];
    if (piece?.kind === "heading" && piece.level <= level) return next;
  }
  return pieces.length;
}
