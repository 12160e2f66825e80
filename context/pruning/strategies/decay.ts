import type { PruningConfig } from "../../../protocol/pruning/config.ts";
import { fromBlocks } from "../../parts/recall/content.ts";
import type { Call, Calls, ResultMessage } from "./calls.ts";
import type { OutputRemoval } from "./removal.ts";

type SizeDecay = PruningConfig["strategies"]["sizeDecay"];

/** Shortens old and large outputs to their beginnings and ends. */
export function decayed(
  { all }: Calls,
  { turns, minTokens, head, tail }: SizeDecay,
  tokensOf: (message: ResultMessage) => number,
  isWanted: (call: Call) => boolean,
): OutputRemoval[] {
  return all.flatMap((call): OutputRemoval[] => {
    const { result: target } = call;
    if (target?.isWhole !== true || call.turns < turns) return [];
    // The expensive checks come last.
    if (tokensOf(target.message) <= minTokens || !isWanted(call)) return [];
    const { text } = fromBlocks(target.message.content);
    return text.length <= head + tail
      ? []
      : [{ kind: "output", strategy: "sizeDecay", target, call, keeps: { head, tail } }];
  });
}
