/**
 * A section that lists by tools, with its items in the order of their text: pi writes them in the order in which tools were
 * registered. `undefined`: it has nothing to sort, or is not as pi writes it, and stays as it is.
 */
export function sortedSection(name: string, text: string): string | undefined {
  if (name !== "tools" && name !== "rules") return undefined;
  const [open, close] = [`<${name}>\n`, `\n</${name}>`];
  if (!text.startsWith(open) || !text.endsWith(close)) return undefined;
  const content = text.slice(open.length, -close.length);
  // Behind the list of tools stands a paragraph.
  const end = name === "tools" ? content.indexOf("\n\n") : -1;
  const list = end === -1 ? content : content.slice(0, end);
  if (!list.startsWith("- ")) return undefined;
  // An item may have further lines.
  const items = list.split(/\n(?=- )/);
  const sorted = items.toSorted();
  if (sorted.every((item, at) => item === items[at])) return undefined;
  return `${open}${sorted.join("\n")}${end === -1 ? "" : content.slice(end)}${close}`;
}
