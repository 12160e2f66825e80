import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { COMPRESS_TOOL } from "../../../../protocol/pruning/config.ts";
import type { PruningBench } from "../bench.ts";
import type { Compressor } from "./compressor.ts";
import { compressTool } from "./tool.ts";

const part = "compress";

type Bench = Pick<
  PruningBench,
  "pi" | "on" | "onSession" | "notify" | "context" | "pruning" | "off" | "conflict" | "prompts" | "usage"
> & { readonly compressor: Compressor };

/**
 * Puts the tool into the session once pruning is on, unless another extension has one of that name: pi takes the first, and
 * ours would hide it.
 */
export function addCompress(bench: Bench): void {
  const { pi, pruning } = bench;
  let state: "none" | "ours" | "theirs" = "none";
  let isKnown = false;
  const wrongPlaceholders = {
    get isKnown(): boolean {
      return isKnown;
    },
    seen: (): void => {
      isKnown = true;
    },
  };
  const provide = (_ctx: ExtensionContext): void => {
    if (state === "ours" || !pruning().enabled) return;
    const isTaken = pi.getAllTools().some(({ name }) => name === COMPRESS_TOOL);
    if (isTaken && state === "theirs") return;
    state = isTaken ? "theirs" : "ours";
    const why = isTaken ? `Another extension has a tool named ${COMPRESS_TOOL}.` : undefined;
    bench.conflict(why);
    if (why === undefined)
      pi.registerTool(compressTool({ ...bench, description: bench.prompts.text("compress"), wrongPlaceholders }));
    else bench.notify("pruning/degraded", { reason: "tool_conflict", message: why });
  };
  bench.onSession(provide, part);
  bench.on(part, "before_agent_start", (_event, ctx) => provide(ctx));
  bench.on(part, "agent_start", (_event, ctx) => provide(ctx));
  bench.on(part, "agent_settled", () => {
    isKnown = false;
  });
}
