const idPattern = /^\s*(?:<dcp-message-id>)?[[(`"'\s]*b(\d{1,9})[\])`"'\s]*(?:<\/dcp-message-id>)?\s*$/iu;
const maxWritten = 128;

/** The id of a block: `b1`. */
export function blockIdOf(number: number): string {
  return `b${number}`;
}

/** The number of a block's id in any form that a model writes. `undefined`: not a block id. */
export function blockNumberOf(id: string): number | undefined {
  const digits = id.length > maxWritten ? undefined : idPattern.exec(id)?.[1];
  const number = digits === undefined ? 0 : Number(digits);
  return number > 0 ? number : undefined;
}

/** Whether a value is a block id in canonical form. */
export function isBlockId(value: unknown): value is string {
  return typeof value === "string" && /^b[1-9]\d{0,8}$/u.test(value);
}
