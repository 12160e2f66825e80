const open = "<dcp-message-id>";
const close = "</dcp-message-id>";
const exact = /^<dcp-message-id>(m[0-9]{3,9}|b[1-9][0-9]{0,8})<\/dcp-message-id>$/u;
const anywhere = /<dcp-message-id>(m[0-9]{3,9}|b[1-9][0-9]{0,8})<\/dcp-message-id>/gu;

/** What tells the model by which id a message is named: the last block of the message. */
export function tagOf(id: string): string {
  return `${open}${id}${close}`;
}

/** The id of a text that is a tag and nothing else. */
export function taggedId(text: unknown): string | undefined {
  return typeof text === "string" && text.length < 64 ? exact.exec(text)?.[1] : undefined;
}

/** A text without the tag that ends it. */
export function withoutLastTag(text: string): string {
  if (!text.endsWith(close)) return text;
  const at = text.lastIndexOf(open);
  return taggedId(text.slice(Math.max(at, 0))) === undefined ? text : text.slice(0, at);
}

/** The ids of a text's tags. `isWhole`: of all of them, else of the one that it ends with. */
export function idsOfTags(text: string, isWhole: boolean): string[] {
  if (!isWhole) {
    const id = text.endsWith(close) ? taggedId(text.slice(text.lastIndexOf(open))) : undefined;
    return id === undefined ? [] : [id];
  }
  return mayHoldTag(text) ? Array.from(text.matchAll(anywhere), ([, id = ""]) => id) : [];
}

/** Whether a text may hold a tag: most hold none. */
export function mayHoldTag(text: string): boolean {
  return text.includes(open);
}

/**
 * A text without the tags whose ids `isIssued` knows. A tag that has a line for itself goes with the end of its line;
 * everything else of the text stays as it is. Gives the text itself where there is nothing to remove.
 */
export function withoutTags(text: string, isIssued: (id: string) => boolean): string {
  if (!mayHoldTag(text)) return text;
  let made = "";
  let at = 0;
  for (const found of text.matchAll(anywhere)) {
    const [tag, id = ""] = found;
    if (!isIssued(id)) continue;
    made += text.slice(at, found.index);
    at = found.index + tag.length;
    if (made !== "" && !made.endsWith("\n")) continue;
    if (text[at] === "\n") at += 1;
    else if (text.startsWith("\r\n", at)) at += 2;
  }
  return at === 0 ? text : made + text.slice(at);
}
