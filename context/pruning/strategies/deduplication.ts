import { fromBlocks } from "../../parts/recall/content.ts";
import { callKey } from "./call-key.ts";
import type { Call, Calls } from "./calls.ts";
import type { OutputRemoval } from "./removal.ts";
import type { Touches } from "./touches.ts";

/** A call whose output the model sees. */
type Answered = Call & Required<Pick<Call, "result">>;

/**
 * Of calls that ask for the same only the newest output stays, as long as nothing between them may have changed what they are
 * about. What differs is another version of a file, or the newer answer of something that is no file.
 */
export function repeated({ all }: Calls, touches: Touches, isWanted: (call: Call) => boolean): OutputRemoval[] {
  const groups = new Map<string, Call[]>();
  for (const call of all) {
    const key = callKey(call.tool, call.block.arguments);
    if (key === undefined) continue;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [call]);
    else group.push(call);
  }
  const removals: OutputRemoval[] = [];
  for (const group of groups.values()) {
    if (group.length < 2 || !isWanted(group[0] as Call)) continue;
    removals.push(...inGroup(group, touches));
  }
  return removals;
}

function inGroup(group: readonly Call[], touches: Touches): OutputRemoval[] {
  const removals: OutputRemoval[] = [];
  /** The newest output that stays, with nothing between it and the call that is looked at. */
  let stays: Answered | undefined;
  for (let at = group.length - 1; at >= 0; at -= 1) {
    const call = group[at] as Call;
    const later = group[at + 1];
    if (later !== undefined && touches.between(call, later)) stays = undefined;
    if (!isAnswered(call)) continue;
    const why = stays === undefined ? undefined : whyIn(call, stays, touches);
    if (why !== undefined) {
      removals.push({ kind: "output", strategy: "deduplication", target: call.result, call, why });
    } else if (stays === undefined) stays = call;
  }
  return removals;
}

function isAnswered(call: Call): call is Answered {
  return call.result?.isWhole === true;
}

/** Why an output is not needed beside a newer one. `undefined`: it is. */
function whyIn(call: Answered, newer: Answered, touches: Touches): string | undefined {
  const [is, becomes] = [call.result.message, newer.result.message];
  if (isSame(is, becomes)) return "pruned, repeated below";
  // Another content is another version of the file, whoever changed it.
  if (touches.pathsOf(call).length > 0) return undefined;
  if (becomes.isError && !is.isError) return undefined;
  // Where nothing is asked for, the next answer is of something else: of the next page.
  if (Object.keys(call.block.arguments).length === 0) return undefined;
  return "pruned, newer output below";
}

function isSame(a: Answered["result"]["message"], b: Answered["result"]["message"]): boolean {
  if (a.isError !== b.isError) return false;
  const [one, other] = [fromBlocks(a.content), fromBlocks(b.content)];
  if (one.text !== other.text || one.images.length !== other.images.length) return false;
  return one.images.every(({ data, mimeType }, at) => {
    const image = other.images[at];
    return image?.mimeType === mimeType && image.data === data;
  });
}
