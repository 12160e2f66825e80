import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { MessageIds, PruningBench } from "./bench.ts";
import { idsData, messageIdOf, messageNumberOf } from "./ids-record.ts";
import { IdsRegistry } from "./ids-registry.ts";
import { IDS_MARK } from "./record.ts";
import { hasId } from "./spoken.ts";

const part = "ids";

/** What of the bench there is before the ids are. */
type Bench = Omit<PruningBench, "ids" | "blocks" | "usage">;

/** Ids, and who gives them. */
export interface GivenMessageIds extends MessageIds {
  /** The id of an entry, which it gets now if it has none. `undefined`: there is none left. */
  give(entryId: string, ctx: ExtensionContext): string | undefined;
  /** The model had written so many tags. */
  removed(tags: number): void;
}

/**
 * Gives ids to messages in the order in which they are seen first, over all branches of the file, and has them written
 * down at the next boundary: at the end of an aborted run, which may have none, without one.
 */
export function addIds(bench: Bench): GivenMessageIds {
  bench.memory.messageIds ??= new Map();
  let removed = 0;
  const registry = new IdsRegistry(bench.memory.messageIds);
  const written = (number: number | undefined): string | undefined =>
    number === undefined || number === 0 ? undefined : messageIdOf(number);
  const give = (entryId: string, { sessionManager }: ExtensionContext): string | undefined =>
    written(registry.give(entryId, sessionManager));

  bench.entries.need((_messages, ctx) => bench.off(ctx) === undefined);
  bench.boundary.contribute(part, ({ state, ctx }) => {
    const shown: string[] = [];
    if (bench.off(ctx) === undefined) {
      // What the next request shows first is written down before it is shown.
      for (const { sourceEntry, messages } of state.context.contextEntries)
        if (messages.some((message) => hasId(message, bench.pruning()))) shown.push(sourceEntry.id);
      for (const entryId of shown) give(entryId, ctx);
    }
    if (shown.length === 0 && bench.memory.messageIds?.size === 0) return undefined;
    const ids = registry.unrecordedOn(shown, ctx.sessionManager);
    if (ids.size === 0) return undefined;
    return { drafts: [{ type: "custom", customType: IDS_MARK, data: idsData(ids) }] };
  });
  bench.on(part, "agent_settled", (_event, ctx) => {
    if (bench.memory.messageIds?.size === 0) return;
    const ids = registry.unrecorded(ctx.sessionManager);
    if (ids.size > 0) bench.pi.appendEntry(IDS_MARK, idsData(ids));
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
