import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { SessionEntry } from "../../extension/pi-types.ts";
import { isRecord } from "../../protocol/objects.ts";
import { COMPRESS_TOOL } from "../../protocol/pruning/config.ts";
import type { PruningMode } from "../../protocol/pruning/report.ts";
import { BranchFold } from "../folds.ts";
import type { Mode, PruningServices } from "./pruning-services.ts";
import { MODE_MARK } from "./record.ts";

type Host = Pick<PruningServices, "pi" | "on" | "boundary" | "onSession" | "pruning" | "off">;

/** The error of a call without a grant. */
export const WAITS_FOR_USER = "Compression waits for the user in manual mode.";

const part = "pruning-mode";

export function createMode(host: Host): Mode {
  const { pi, pruning } = host;
  /** The newest mode on the branch. */
  const written = new BranchFold<PruningMode | undefined>(
    () => undefined,
    (mode, entry) => modeIn(entry) ?? mode,
  );
  /** Set during a run and not yet written to the branch. */
  let said: PruningMode | undefined;
  let isGranted = false;
  const of = ({ sessionManager }: ExtensionContext): PruningMode =>
    said ?? written.of(sessionManager) ?? (pruning().manualMode.enabled ? "manual" : "automatic");

  host.onSession(() => {
    said = undefined;
    isGranted = false;
  }, part);
  host.boundary.contribute(part, ({ ctx }) => {
    if (said !== undefined && written.of(ctx.sessionManager) === said) said = undefined;
    return said === undefined ? undefined : { drafts: [{ type: "custom", customType: MODE_MARK, data: data(said) }] };
  });
  host.on(part, "agent_settled", (_event, { sessionManager }) => {
    isGranted = false;
    // An aborted run may have had no accepted boundary.
    if (said !== undefined && written.of(sessionManager) !== said) pi.appendEntry(MODE_MARK, data(said));
    said = undefined;
  });
  host.on(part, "tool_call", ({ toolName }, ctx) => {
    if (toolName !== COMPRESS_TOOL || host.off(ctx) !== undefined) return undefined;
    if (of(ctx) !== "manual" || !pruning().manualMode.strict) return undefined;
    if (!isGranted) return { block: true, reason: WAITS_FOR_USER };
    isGranted = false;
    return undefined;
  });

  return {
    of,
    set: (mode, ctx) => {
      if (of(ctx) === mode) return false;
      if (ctx.isIdle()) pi.appendEntry(MODE_MARK, data(mode));
      else said = mode;
      return true;
    },
    grant: () => {
      isGranted = true;
    },
  };
}

function data(mode: PruningMode): object {
  return { v: 1, mode };
}

function modeIn(entry: SessionEntry): PruningMode | undefined {
  if (entry.type !== "custom" || entry.customType !== MODE_MARK || !isRecord(entry.data)) return undefined;
  const { v, mode } = entry.data;
  return v === 1 && (mode === "manual" || mode === "automatic") ? mode : undefined;
}
