import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { Block, PruningServices } from "../pruning-services.ts";

const part = "pruning_checkpoints";
const maxTold = 1_000;

type Host = Pick<PruningServices, "on" | "onSession" | "notify" | "blocks" | "off">;

/**
 * Notifies subscribers of blocks that a compaction removed from the context. A drafted compaction emits no event, so each
 * turn checks for one.
 */
export function addCheckpoints(host: Host): void {
  let known: ReadonlySet<string> = new Set();
  const left = (ctx: ExtensionContext): readonly Block[] =>
    host.off(ctx) === undefined ? host.blocks.on(ctx).all.filter(({ state }) => state.kind === "checkpointed") : [];
  const look = (ctx: ExtensionContext): void => {
    const now = left(ctx);
    const come = now.filter(({ id }) => !known.has(id));
    known = new Set(now.map(({ id }) => id));
    if (come.length === 0) return;
    const tokens = come.reduce((sum, { tokensAfter }) => sum + tokensAfter, 0);
    const blocks = come.slice(-maxTold).map(({ id }) => id);
    host.notify("pruning/changed", { cause: "compaction", blocks, pruned: [], tokens: Math.round(tokens) });
  };
  const begin = (ctx: ExtensionContext): void => {
    known = new Set(left(ctx).map(({ id }) => id));
  };
  host.onSession(begin, part);
  // Another branch has other blocks.
  host.on(part, "session_tree", (_event, ctx) => begin(ctx));
  host.on(part, "session_compact", (_event, ctx) => look(ctx));
  host.on(part, "turn_start", (_event, ctx) => look(ctx));
}
