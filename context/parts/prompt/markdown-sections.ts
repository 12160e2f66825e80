/**
 * Returns a flat section under a heading instead of in a tag. `undefined`: the section is not flat and stays unchanged.
 * Skills, borders of context files and summaries are not flat, because their tags delimit foreign text.
 */
export function markdownSection(name: string, text: string): string | undefined {
  const [open, close] = [`<${name}>\n`, `\n</${name}>`];
  if (!text.startsWith(open) || !text.endsWith(close) || text.length < open.length + close.length) return undefined;
  const content = text.slice(open.length, -close.length);
  if (tag.test(content) || heading.test(content)) return undefined;
  return `## ${name}\n${content}`;
}

/** A line that begins with a tag. The pattern stays within a line, because prompts can have many empty lines. */
const tag = /^[^\S\n\r\u2028\u2029]*<\/?[A-Za-z][A-Za-z0-9_-]*[\s>]/m;
/** A heading of the same or a higher level; text after it would not belong to the section. */
const heading = /^#{1,2} |^(?:=+|-+)\s*$/m;
