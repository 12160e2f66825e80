/** A link that the page shows. */
export interface Address {
  /** As a browser writes it: the host in ASCII. */
  readonly href: string;
  /** Where it leads, for people: the host, or the recipient of a mail. */
  readonly place: string;
}

const protocols: ReadonlySet<string> = new Set(["https:", "http:", "mailto:"]);
/** Longer ones stay text: no site needs them, and they would carry words out. */
const maxChars = 2_048;

/** Undefined: a page must not link to it. Only whole addresses count, because nothing is relative to this page. */
export function addressOf(text: string): Address | undefined {
  if (text.length > maxChars) return undefined;
  const url = URL.parse(text);
  if (url === null || !protocols.has(url.protocol)) return undefined;
  const place = url.protocol === "mailto:" ? url.pathname : url.host;
  return place === "" ? undefined : { href: url.href, place };
}

/** Whether the words of a link already say where it leads. */
export function saysPlace(words: string, { href, place }: Address): boolean {
  const isWhole = words === href || `${words}/` === href;
  return words === place || (isWhole && !href.includes("@"));
}
