import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { Memory } from "../../extension/memory.ts";
import { idsData, messageIdOf, messageNumberOf } from "./ids-record.ts";
import { type GivenIds, IdsRegistry } from "./ids-registry.ts";
import type { MessageIds, PruningServices } from "./pruning-services.ts";
import { IDS_MARK } from "./record.ts";
import { hasId } from "./spoken.ts";

const part = "ids";

type Host = Pick<PruningServices, "pi" | "entries" | "boundary" | "on" | "off" | "pruning">;

/** Message ids with the operations that assign them. */
export interface GivenMessageIds extends MessageIds {
  /** Returns the id of an entry and assigns one if it has none. `undefined`: no id is left. */
  give(entryId: string, ctx: ExtensionContext): string | undefined;
  /** Counts tags that the model wrote and that were removed. */
  removed(tags: number): void;
}

/** The ids that outlive a reload of the modules because no entry records them yet. */
export function keptIds({ kept }: Pick<Memory, "kept">): GivenIds {
  const ids = kept.of<GivenIds>("messageIds");
  ids.value ??= new Map();
  return ids.value;
}

/**
 * Assigns ids to messages in the order of their first request, over all branches of the file, and records them at the
 * next boundary. An aborted run may have no boundary, so the end of a run records them too.
 */
export function addIds(host: Host, given: GivenIds): GivenMessageIds {
  let removed = 0;
  const registry = new IdsRegistry(given);
  const written = (number: number | undefined): string | undefined =>
    number === undefined || number === 0 ? undefined : messageIdOf(number);
  const give = (entryId: string, { sessionManager }: ExtensionContext): string | undefined =>
    written(registry.give(entryId, sessionManager));

  host.entries.need((_messages, ctx) => host.off(ctx) === undefined);
  host.boundary.contribute(part, ({ state, ctx }) => {
    const shown: string[] = [];
    if (host.off(ctx) === undefined) {
      // Record the ids that the next request shows before it shows them.
      for (const { sourceEntry, messages } of state.context.contextEntries)
        if (messages.some((message) => hasId(message, host.pruning()))) shown.push(sourceEntry.id);
      for (const entryId of shown) give(entryId, ctx);
    }
    if (shown.length === 0 && given.size === 0) return undefined;
    const ids = registry.unrecordedOn(shown, ctx.sessionManager);
    if (ids.size === 0) return undefined;
    return { drafts: [{ type: "custom", customType: IDS_MARK, data: idsData(ids) }] };
  });
  host.on(part, "agent_settled", (_event, ctx) => {
    if (given.size === 0) return;
    const ids = registry.unrecorded(ctx.sessionManager);
    if (ids.size > 0) host.pi.appendEntry(IDS_MARK, idsData(ids));
  });

  return {
    give,
    removed: (tags) => {
      removed += tags;
    },
    echoes: ({ sessionManager }) => ({ removed, bare: registry.bare(sessionManager) }),
    idOf: (entryId, { sessionManager }) => written(registry.numberOf(entryId, sessionManager)),
    entryOf: (id, { sessionManager }) => {
      const number = messageNumberOf(id);
      return number === undefined ? undefined : registry.entryOf(number, sessionManager);
    },
    newest: ({ sessionManager }) => written(registry.highest(sessionManager)),
  };
}
