const named: Readonly<Record<string, string>> = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: '"',
  apos: "'",
  nbsp: "\u00a0",
};

/** Resolves references to characters by number, and the few names that models write. Others stay as they are. */
export function resolveEntities(text: string): string {
  if (!text.includes("&")) return text;
  return text.replace(/&(?:#(\d{1,7})|#[xX]([\da-fA-F]{1,6})|(amp|lt|gt|quot|apos|nbsp));/g, (whole, ...groups) => {
    const [decimal, hexadecimal, name] = groups as (string | undefined)[];
    if (name !== undefined) return named[name] ?? whole;
    const point = decimal === undefined ? Number.parseInt(hexadecimal ?? "", 16) : Number(decimal);
    const isCharacter = point > 0 && point <= 0x10ffff && (point < 0xd800 || point > 0xdfff);
    return isCharacter ? String.fromCodePoint(point) : "\ufffd";
  });
}
