import { isRecord } from "../../../protocol/objects.ts";
import { fromBlocks } from "../../parts/recall/content.ts";
import type { Call, Calls } from "./calls.ts";
import type { OutputRemoval } from "./removal.ts";
import type { Touches } from "./touches.ts";

/** A call whose output the model sees. */
type Answered = Call & Required<Pick<Call, "result">>;

/**
 * Keeps only the newest output of equal calls, unless something between them may have changed their subject. Different
 * outputs are other versions of a file, which stay, or newer answers of a tool without files, which replace older ones.
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
  /** The newest kept output without a change between it and the current call. */
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

/** Why a newer output makes this one redundant. `undefined`: it does not. */
function whyIn(call: Answered, newer: Answered, touches: Touches): string | undefined {
  const [is, becomes] = [call.result.message, newer.result.message];
  if (isSame(is, becomes)) return "pruned, repeated below";
  // Different content is another version of the file.
  if (touches.pathsOf(call).length > 0) return undefined;
  if (becomes.isError && !is.isError) return undefined;
  // Without arguments, the next output can be something else, such as the next page.
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

/** Calls with larger arguments never match. UTF-16 units of JSON, number of values, and depth. */
const maxChars = 65_536;
const maxValues = 10_000;
const maxDepth = 32;

const known = new WeakMap<object, string | null>();

/** A key that is equal for calls with equal arguments. `undefined`: the arguments are too large or not an object. */
function callKey(tool: string, args: unknown): string | undefined {
  if (!isRecord(args)) return undefined;
  const before = known.get(args);
  const json = before === undefined ? (canonical(args) ?? null) : before;
  known.set(args, json);
  return json === null ? undefined : `${tool} ${json}`;
}

/** JSON with sorted keys, without null and undefined values. */
function canonical(args: object): string | undefined {
  const left = { chars: maxChars, values: maxValues };
  const parts: string[] = [];
  return write(args, { parts, left, depth: 0 }) ? parts.join("") : undefined;
}

interface Writing {
  readonly parts: string[];
  readonly left: { chars: number; values: number };
  readonly depth: number;
}

/** Returns false if the value is too large. */
function write(value: unknown, { parts, left, depth }: Writing): boolean {
  left.values -= 1;
  if (left.values < 0 || depth > maxDepth) return false;
  const put = (text: string): boolean => {
    left.chars -= text.length;
    parts.push(text);
    return left.chars >= 0;
  };
  const inner: Writing = { parts, left, depth: depth + 1 };
  if (Array.isArray(value)) {
    return put("[") && value.every((one) => write(one ?? null, inner) && put(",")) && put("]");
  }
  if (isRecord(value)) {
    const names = Object.keys(value)
      .filter((name) => value[name] !== undefined && value[name] !== null)
      .toSorted();
    return (
      put("{") && names.every((name) => put(JSON.stringify(name)) && write(value[name], inner) && put(",")) && put("}")
    );
  }
  // Skip the copy if the text exceeds the remaining budget.
  if (typeof value === "string" && value.length > left.chars) return false;
  return put(JSON.stringify(value) ?? "null");
}
