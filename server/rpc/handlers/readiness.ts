import { existsSync } from "node:fs";
import type { PiInfo, Readiness, StoreInfo } from "../../../protocol/daemon.ts";
import { WireError } from "../../../protocol/errors.ts";
import { limits } from "../../configuration/limits.ts";

export interface ReadinessFacts {
  readonly pi: Pick<PiInfo, "path">;
  readonly store: () => StoreInfo;
  readonly lostLogLines: () => number;
}

/** How the daemon is, where it can do its work. Throws `not_ready`, with every reason, where it cannot. */
export async function readiness({ pi, store, lostLogLines }: ReadinessFacts): Promise<Readiness> {
  const eventLoopDelayMs = await loopDelayMs();
  const { state, why } = store();
  const found = existsSync(pi.path);
  const checks = {
    store: state,
    pi: found ? "found" : "missing",
    eventLoopDelayMs,
    lostLogLines: lostLogLines(),
  } as const;
  const reasons = [
    ...(state === "open" ? [] : [`The store cannot be written: ${why ?? "it fails"}.`]),
    ...(found ? [] : [`There is no pi at ${pi.path} any more.`]),
    ...(eventLoopDelayMs <= limits.maxLoopDelayMs ? [] : [`The event loop is ${eventLoopDelayMs} ms late.`]),
  ];
  if (reasons.length === 0) return { ready: true, ...checks };
  throw new WireError("not_ready", reasons.join(" "), { reasons, checks });
}

/** How much later than asked for a timer comes now. */
async function loopDelayMs(): Promise<number> {
  const startedAt = performance.now();
  await new Promise((resolve) => setTimeout(resolve, 1));
  return Math.max(0, Math.round(performance.now() - startedAt - 1));
}
