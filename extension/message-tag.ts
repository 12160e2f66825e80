const open = "<dcp-message-id>";
const close = "</dcp-message-id>";
const exact = /^<dcp-message-id>(m[0-9]{3,9}|b[1-9][0-9]{0,8})<\/dcp-message-id>$/u;
const anywhere = /<dcp-message-id>(m[0-9]{3,9}|b[1-9][0-9]{0,8})<\/dcp-message-id>/gu;

/** Tag that tells the model the id of a message; it is the message's last block. */
export function tagOf(id: string): string {
  return `${open}${id}${close}`;
}

/** Returns the id if the text is exactly one tag. */
export function taggedId(text: unknown): string | undefined {
  return typeof text === "string" && text.length < 64 ? exact.exec(text)?.[1] : undefined;
}

/** Removes the tag at the end of a text. */
export function withoutLastTag(text: string): string {
  if (!text.endsWith(close)) return text;
  const at = text.lastIndexOf(open);
  return taggedId(text.slice(Math.max(at, 0))) === undefined ? text : text.slice(0, at);
}

/** Returns the ids of a text's tags: all of them if `isWhole`, otherwise only of a tag at the end. */
export function idsOfTags(text: string, isWhole: boolean): string[] {
  if (!isWhole) {
    const id = text.endsWith(close) ? taggedId(text.slice(text.lastIndexOf(open))) : undefined;
    return id === undefined ? [] : [id];
  }
  return mayHoldTag(text) ? Array.from(text.matchAll(anywhere), ([, id = ""]) => id) : [];
}

/** Whether a text may contain a tag; a cheap check, because most do not. */
export function mayHoldTag(text: string): boolean {
  return text.includes(open);
}

/**
 * Removes the tags whose ids `isIssued` accepts. A tag alone on a line is removed with its line break; the rest of the
 * text is unchanged. Returns the text itself if there is nothing to remove.
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
