/**
 * A document with its generated parts, as rendered by `parts`. Each is between two markers; throws if they are
 * missing.
 */
export function filled(document: string, parts: Readonly<Record<string, () => string>>): string {
  let result = document;
  for (const [name, render] of Object.entries(parts)) {
    const [begin, end] = [`<!-- generated: ${name} -->`, `<!-- end: ${name} -->`];
    const from = result.indexOf(begin);
    const to = result.indexOf(end);
    if (from === -1 || to < from) throw new Error(`the document lacks the markers ${begin} and ${end}`);
    result = `${result.slice(0, from)}${begin}\n\n${render()}\n\n${result.slice(to)}`;
  }
  return result;
}

/** The document without its generated parts. */
export function withoutGeneratedParts(document: string): string {
  return document.replaceAll(/<!-- generated: (\w+) -->.*?<!-- end: \1 -->/gs, "");
}

/** A table in Markdown. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.map(cell).join(" | ")} |`;
  return [line(head), `|${"---|".repeat(head.length)}`, ...rows.map(line)].join("\n");
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|").replaceAll("\n", " ").trim();
}
