import { fromBlocks } from "../../parts/recall/content.ts";
import type { Call, Calls } from "./calls.ts";
import type { OutputRemoval } from "./removal.ts";
import { hasLongText } from "./replacement.ts";

/** What stays of an error's text. UTF-16 units: its end says what has failed. */
const keeps = { head: 200, tail: 600 } as const;

/** Calls that failed so many turns ago. */
export function failedCalls({ all }: Calls, turns: number, isWanted: (call: Call) => boolean): Call[] {
  return all.filter((call) => call.result?.message.isError === true && call.turns >= turns && isWanted(call));
}

/** Those with arguments that may go: a signed call has to stay as the service has given it. */
export function withLongArguments(calls: readonly Call[]): Call[] {
  return calls.filter(({ block }) => !isSigned(block) && hasLongText(block.arguments));
}

/** Their errors, where they are long. */
export function longErrors(calls: readonly Call[]): OutputRemoval[] {
  return calls.flatMap((call): OutputRemoval[] => {
    const { result: target } = call;
    if (target?.isWhole !== true) return [];
    const { text } = fromBlocks(target.message.content);
    if (text.length <= 2 * (keeps.head + keeps.tail)) return [];
    return [{ kind: "output", strategy: "purgeErrors", target, call, keeps }];
  });
}

export function isSigned(block: Call["block"]): boolean {
  return block.thoughtSignature !== undefined;
}
