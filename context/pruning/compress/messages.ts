import { percent } from "../../../protocol/number-text.ts";

// Messages to the model about a refused compression. Each states one problem in one line.

/** Reported findings of one call. */
export const mostFindings = 10;
/** Proposed ranges. */
export const mostCandidates = 5;

/** The last line of a result if nothing can be compressed. It pauses reminders. */
export const nothingToCompress = "There is nothing to compress now; continue with the task.";

export const deniedMessage = "Compression is not permitted in this session.";
export const notAllowedMessage = "The user has not allowed this compression; continue with the task.";
export const breakerMessage = (failures: number): string =>
  `Compression is paused after ${failures} failures; continue with the task.`;

export const missingField = (field: string): string => `${field} is missing.`;
export const emptyField = (field: string): string => `${field} is empty.`;
export const wrongField = (field: string, what: string): string => `${field} is not ${what}.`;
export const tooLong = (field: string, length: number, most: number): string =>
  `${field} has ${length} characters; the most are ${most}.`;
export const tooMany = (count: number, most: number): string => `ranges has ${count} entries; the most are ${most}.`;

export const malformedId = (written: string): string =>
  `${JSON.stringify(written)} is not an id. Use mNNN or bN as shown in the context.`;
export const unknownId = (id: string, newest: string | undefined): string =>
  `${id} does not exist. ${newest === undefined ? "There is none yet." : `The newest id is ${newest}.`}`;
export const goneId = (id: string): string => `${id} is not in the context any more.`;
export const hiddenId = (id: string, block: string): string => `${id} is inside ${block}. Use ${block}.`;
export const consumedBlock = (id: string, parent: string): string => `${id} is part of ${parent}. Use ${parent}.`;
export const inactiveBlock = (id: string): string => `${id} is not active.`;
export const wrongOrder = (start: string, end: string): string =>
  `${start} comes after ${end}. Use startId ${end}, endId ${start}.`;
export const overlapping = (one: number, other: number, span: string): string =>
  `ranges[${one}] and ranges[${other}] overlap at ${span}.`;
export const oneBlock = (id: string): string => `${id} alone is already compressed.`;
export const ownCall = "The range contains this compress call.";
export const notCompressible = (what: string): string => `The range contains a ${what}.`;
export const tooMuchKept = (span: string, units: number, most: number): string =>
  `${span} has ${units} characters that are protected; a block keeps ${most} at most. Take a smaller range.`;
export const tooManyKept = (span: string, texts: number, most: number): string =>
  `${span} has ${texts} texts that are protected; a block keeps ${most} at most. Take a smaller range.`;
export const notStorable =
  "The user has just changed blocks of these ranges; use the ids as your next message shows the context.";
export const beingDelivered = (id: string): string => `${id} is still being delivered.`;

/**
 * `turns`: turns protected now. `max`: share of the window above which fewer are protected; `undefined`: no such share.
 */
export function protectedTail(span: string, isOne: boolean, turns: number, max: number | undefined): string {
  const [belong, stay] = isOne ? ["belongs", "stays"] : ["belong", "stay"];
  const where = turns === 1 ? "the current turn" : `the ${turns} most recent turns`;
  const until = max === undefined ? "" : ` while usage is below ${percent(max, 1)}`;
  return `${span} ${belong} to ${where} and ${stay} raw${until}.`;
}

export const missingPlaceholder = (id: string): string =>
  `The summary must contain (${id}) once; the range contains ${id}.`;
export const duplicatePlaceholder = (id: string, times: number): string => `(${id}) occurs ${times} times.`;
export const foreignPlaceholder = (id: string, span: string): string =>
  `(${id}) is not in ${span}. Write "compressed ${id}" to mention it.`;
export const tooSmall = (span: string, tokens: number, minimum: number): string =>
  `${span} is about ${tokens} tokens; the minimum is ${minimum}.`;
export const noSaving = (summary: number, range: number, minSavings: number): string =>
  `The summary (${summary} tokens) is not smaller than ${percent(1 - minSavings, 1)} of the range (${range}).`;
