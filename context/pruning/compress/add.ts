import { COMPRESS_TOOL } from "../../../protocol/pruning/config.ts";
import type { PruningContext } from "../pruning-context.ts";
import type { Compressor } from "./compressor.ts";
import { StoredBlocks } from "./stored-blocks.ts";
import { compressTool } from "./tool.ts";

const part = "compress";

/**
 * Registers the compress tool when pruning is on, unless another extension has a tool of that name: pi uses the first
 * one, and ours would hide it.
 */
export function addCompress(host: PruningContext, compressor: Compressor): void {
  const { pi, pruning, prompts } = host;
  const stored = new StoredBlocks(host);
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
      host.conflict(why);
      host.notify("pruning/degraded", { reason: "tool_conflict", message: why });
      return;
    }
    host.conflict(undefined);
    const made: Parameters<typeof compressTool>[0]["made"] = (callId, compressed) => stored.made(callId, compressed);
    pi.registerTool(compressTool({ host, compressor, made, wrongPlaceholders, description: prompts.text("compress") }));
  };
  host.onSession(provide, part);
  host.on(part, "before_agent_start", provide);
  host.on(part, "agent_start", provide);
  host.on(part, "agent_settled", () => {
    isKnown = false;
  });
}
