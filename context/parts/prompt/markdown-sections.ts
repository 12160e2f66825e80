/**
 * A flat section under a heading instead of in a tag of its name. `undefined`: it is not flat, and stays as it is. Skills,
 * the borders of context files and summaries are not: their tags say where the text of others begins and ends.
 */
export function markdownSection(name: string, text: string): string | undefined {
  const [open, close] = [`<${name}>\n`, `\n</${name}>`];
  if (!text.startsWith(open) || !text.endsWith(close) || text.length < open.length + close.length) return undefined;
  const content = text.slice(open.length, -close.length);
  if (tag.test(content) || heading.test(content)) return undefined;
  return `## ${name}\n${content}`;
}

/** A line that begins with a tag, closed or not. It is looked for in no more than a line: prompts can have many empty ones. */
const tag = /^[^\S\n\r\u2028\u2029]*<\/?[A-Za-z][A-Za-z0-9_-]*[\s>]/m;
/** A heading of the same rank or above: what stands behind it would seem to be no part of the section. */
const heading = /^#{1,2} |^(?:=+|-+)\s*$/m;
