import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { isObject, type SessionEntry, type SessionReader } from "../../extension/pi-types.ts";
import { COMPRESS_TOOL } from "../../protocol/pruning/config.ts";
import type { PruningMode } from "../../protocol/pruning/report.ts";
import type { PruningContext } from "./pruning-context.ts";
import { MODE_MARK } from "./record.ts";

/** Who decides when the context is compressed: the model, or the user. */
export interface Mode {
  readonly of: (ctx: ExtensionContext) => PruningMode;
  /** Holds for the session from its next request on, also when it is resumed. Gives whether it was the other one. */
  readonly set: (mode: PruningMode, ctx: ExtensionContext) => boolean;
  /** Lets one call of compress through where the mode is strict. It lapses when the run has settled. */
  readonly grant: () => void;
}

type Host = Pick<PruningContext, "pi" | "on" | "boundary" | "onSession" | "pruning" | "off">;

/** What a call is told that the user has not granted. */
export const WAITS_FOR_USER = "Compression waits for the user in manual mode.";

const part = "pruning-mode";

export function createMode(host: Host): Mode {
  const { pi, pruning } = host;
  const written = new WrittenMode();
  /** Said while a run is on, and not on the branch yet. */
  let said: PruningMode | undefined;
  let isGranted = false;
  const of = ({ sessionManager }: ExtensionContext): PruningMode =>
    said ?? written.on(sessionManager) ?? (pruning().manualMode.enabled ? "manual" : "automatic");

  host.onSession(() => {
    said = undefined;
    isGranted = false;
  }, part);
  host.boundary.contribute(part, ({ ctx }) => {
    if (said !== undefined && written.on(ctx.sessionManager) === said) said = undefined;
    return said === undefined ? undefined : { drafts: [{ type: "custom", customType: MODE_MARK, data: data(said) }] };
  });
  host.on(part, "agent_settled", (_event, { sessionManager }) => {
    isGranted = false;
    // An aborted run may have had no boundary that was taken.
    if (said !== undefined && written.on(sessionManager) !== said) pi.appendEntry(MODE_MARK, data(said));
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

/** The newest on the branch. Of one that has grown only what is new is read. */
class WrittenMode {
  #leaf: string | undefined;
  #mode: PruningMode | undefined;

  on(session: SessionReader): PruningMode | undefined {
    const leaf = session.getLeafEntry();
    let entry = leaf;
    let found: PruningMode | undefined;
    while (entry !== undefined && found === undefined && entry.id !== this.#leaf) {
      found = modeIn(entry);
      entry = entry.parentId === null ? undefined : session.getEntry(entry.parentId);
    }
    this.#mode = found ?? (entry === undefined ? undefined : this.#mode);
    this.#leaf = leaf?.id;
    return this.#mode;
  }
}

function modeIn(entry: SessionEntry): PruningMode | undefined {
  if (entry.type !== "custom" || entry.customType !== MODE_MARK || !isObject(entry.data)) return undefined;
  const { v, mode } = entry.data;
  return v === 1 && (mode === "manual" || mode === "automatic") ? mode : undefined;
}
