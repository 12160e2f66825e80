/**
 * Sorts the items of a section that lists tools, because pi writes them in the order of registration. `undefined`:
 * nothing to sort, or an unknown form.
 */
export function sortedSection(name: string, text: string): string | undefined {
  if (name !== "tools" && name !== "rules") return undefined;
  const [open, close] = [`<${name}>\n`, `\n</${name}>`];
  if (!text.startsWith(open) || !text.endsWith(close)) return undefined;
  const content = text.slice(open.length, -close.length);
  // A paragraph follows the list of tools.
  const end = name === "tools" ? content.indexOf("\n\n") : -1;
  const list = end === -1 ? content : content.slice(0, end);
  if (!list.startsWith("- ")) return undefined;
  // An item can span several lines.
  const items = list.split(/\n(?=- )/);
  const sorted = items.toSorted();
  if (sorted.every((item, at) => item === items[at])) return undefined;
  return `${open}${sorted.join("\n")}${end === -1 ? "" : content.slice(end)}${close}`;
}
