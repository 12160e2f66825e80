import { fromBlocks } from "../../parts/recall/content.ts";
import type { Call, Calls } from "./calls.ts";
import type { OutputRemoval } from "./removal.ts";
import { hasLongText } from "./replacement.ts";

/** Kept UTF-16 units of an error text; its end usually states the cause. */
const keeps = { head: 200, tail: 600 } as const;

/** Calls that failed at least `turns` turns ago. */
export function failedCalls({ all }: Calls, turns: number, isWanted: (call: Call) => boolean): Call[] {
  return all.filter((call) => call.result?.message.isError === true && call.turns >= turns && isWanted(call));
}

/** Calls with removable arguments; a signed call must stay unchanged. */
export function withLongArguments(calls: readonly Call[]): Call[] {
  return calls.filter(({ block }) => !isSigned(block) && hasLongText(block.arguments));
}

/** Removals of the calls' long error texts. */
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
