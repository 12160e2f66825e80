import type { BeforeAgentStartEvent, ExtensionContext } from "@earendil-works/pi-coding-agent";
import { COMPRESS_TOOL, type PruningConfig } from "../../protocol/pruning/config.ts";
import type { PruningServices } from "./pruning-services.ts";

/** Whether pruning is active. */
export interface Switch {
  /** Why pruning is off. `undefined`: it is on. Evaluated for each request. */
  readonly off: (ctx: ExtensionContext) => string | undefined;
  /** Disables pruning because another extension owns the tool's name; `undefined` enables it again. */
  readonly conflict: (why: string | undefined) => void;
}

/** The reason if the configuration disables pruning. */
export const PRUNING_OFF = "Pruning is off for this session.";

export function createSwitch(host: Pick<PruningServices, "pi" | "on">, pruning: () => PruningConfig): Switch {
  let conflict: string | undefined;
  // pi uses this object during the whole run, so later changes by other extensions are visible here.
  let options: BeforeAgentStartEvent["systemPromptOptions"] | undefined;
  host.on("pruning", "before_agent_start", ({ systemPromptOptions }) => {
    options = systemPromptOptions;
  });
  host.on("pruning", "agent_settled", () => {
    options = undefined;
  });
  return {
    conflict: (why) => {
      conflict = why;
    },
    off: ({ model }) => {
      const { enabled, models } = pruning();
      if (!enabled) return PRUNING_OFF;
      const name = model === undefined ? "" : `${model.provider}/${model.id}`;
      if (Object.hasOwn(models, name) && models[name]?.enabled === false) return `Pruning is off for ${name}.`;
      if (conflict !== undefined) return conflict;
      if (!host.pi.getActiveTools().includes(COMPRESS_TOOL)) return `The tool ${COMPRESS_TOOL} is not active.`;
      if (options?.forceSystemPrompt !== undefined) return "Another extension has replaced the whole prompt.";
      return undefined;
    },
  };
}
