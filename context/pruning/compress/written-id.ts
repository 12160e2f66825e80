/** The id of a message or block in canonical form. */
export interface WrittenId {
  readonly kind: "message" | "block";
  /** `m012`, `b3`. */
  readonly id: string;
}

const around = /^[\s"'`<>()[\]{}«»“”‘’.,:;*]+|[\s"'`<>()[\]{}«»“”‘’.,:;*]+$/gu;
const tag = /<\/?dcp-(?:message-id|id|block-id)[^<>]{0,64}>/giu;
const form = /^([mb])0*([1-9][0-9]{0,8})$/iu;
const mostWritten = 256;

/**
 * Reads an id in any form that a model writes: any case, leading zeros, with tags, quotes, brackets or blanks around it.
 */
export function readId(written: string): WrittenId | undefined {
  if (written.length > mostWritten) return undefined;
  const bare = written.replace(tag, " ").replace(around, "");
  const [, letter, number] = form.exec(bare) ?? [];
  if (letter === undefined || number === undefined) return undefined;
  return letter.toLowerCase() === "m"
    ? { kind: "message", id: `m${number.padStart(3, "0")}` }
    : { kind: "block", id: `b${number}` };
}
