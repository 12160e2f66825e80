import { COMPRESS_TOOL } from "../../../protocol/pruning/config.ts";
import type { PruningServices } from "../pruning-services.ts";
import type { StoredBlocks } from "./stored-blocks.ts";
import { type CompressTool, compressTool } from "./tool.ts";

const part = "compress";

/**
 * Registers the compress tool when pruning is on, unless another extension has a tool of that name: pi uses the first
 * one, and ours would hide it.
 */
export function addCompress(
  { on, onSession }: Pick<PruningServices, "on" | "onSession">,
  {
    pi,
    pruning,
    prompts,
    conflict,
    notify,
  }: Pick<PruningServices, "pi" | "pruning" | "prompts" | "conflict" | "notify">,
  { stored, compressor, host }: Pick<CompressTool, "compressor" | "host"> & { readonly stored: StoredBlocks },
): void {
  let state: "none" | "ours" | "theirs" = "none";
  let isKnown = false;
  const wrongPlaceholders = {
    isKnown: (): boolean => isKnown,
    seen: (): void => {
      isKnown = true;
    },
  };
  const provide = (): void => {
    if (state === "ours" || !pruning().enabled) return;
    const isTaken = pi.getAllTools().some(({ name }) => name === COMPRESS_TOOL);
    if (isTaken && state === "theirs") return;
    state = isTaken ? "theirs" : "ours";
    if (isTaken) {
      const why = `Another extension has a tool named ${COMPRESS_TOOL}.`;
      conflict(why);
      notify("pruning/degraded", { reason: "tool_conflict", message: why });
      return;
    }
    conflict(undefined);
    const made: CompressTool["made"] = (callId, compressed) => stored.made(callId, compressed);
    pi.registerTool(compressTool({ host, compressor, made, wrongPlaceholders, description: prompts.text("compress") }));
  };
  onSession(provide, part);
  on(part, "before_agent_start", provide);
  on(part, "agent_start", provide);
  on(part, "agent_settled", () => {
    isKnown = false;
  });
}
