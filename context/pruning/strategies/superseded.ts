import type { Call, Calls } from "./calls.ts";
import type { OutputRemoval } from "./removal.ts";
import { hasLongText } from "./replacement.ts";
import { editTools, readTools, type Touches, writeTools } from "./touches.ts";

/** The newest places where files were written or changed, by absolute path. */
class Writes {
  readonly #written = new Map<string, number>();
  readonly #changed = new Map<string, number>();

  constructor({ all }: Calls, touches: Touches) {
    for (const call of all) {
      if (!isDone(call)) continue;
      const isWrite = writeTools.has(call.tool);
      if (!isWrite && !editTools.has(call.tool)) continue;
      for (const path of touches.pathsOf(call)) {
        this.#changed.set(path, call.made.at);
        if (isWrite) this.#written.set(path, call.made.at);
      }
    }
  }

  isWrittenAfter(path: string, at: number): boolean {
    return (this.#written.get(path) ?? -1) > at;
  }

  isChangedAfter(path: string, at: number): boolean {
    return (this.#changed.get(path) ?? -1) > at;
  }
}

/** Writes whose files were overwritten later. */
export function supersededWrites(calls: Calls, touches: Touches, isWanted: (call: Call) => boolean): Call[] {
  const writes = new Writes(calls, touches);
  return calls.all.filter((call) => {
    if (!writeTools.has(call.tool) || !isDone(call) || !isWanted(call) || !hasLongText(call.block.arguments))
      return false;
    const paths = touches.pathsOf(call);
    return paths.length > 0 && paths.every((path) => writes.isWrittenAfter(path, call.made.at));
  });
}

/** Reads of files that were written or edited later. */
export function staleReads(calls: Calls, touches: Touches, isWanted: (call: Call) => boolean): OutputRemoval[] {
  const writes = new Writes(calls, touches);
  return calls.all.flatMap((call): OutputRemoval[] => {
    const { result: target } = call;
    if (target?.isWhole !== true || target.message.isError || !readTools.has(call.tool) || !isWanted(call)) return [];
    const paths = touches.pathsOf(call);
    if (paths.length === 0 || !paths.every((path) => writes.isChangedAfter(path, target.at))) return [];
    return [{ kind: "output", strategy: "staleReads", target, call, why: "pruned, the file was changed later" }];
  });
}

function isDone({ result }: Call): boolean {
  return result !== undefined && !result.message.isError;
}
