import type { ExtensionCommandContext, ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { Result } from "../protocol/methods.ts";
import { AskRefused, type Places } from "./engine-port.ts";
import { isObject, messageOf } from "./pi-types.ts";

/** Marks in the session's file where the branch goes on: pi keeps a moved leaf in memory alone, and forgets it with its end. */
export const NAVIGATED_TYPE = "pi-rpcd.navigated";

/** Moves within the session's tree, sets labels, and tells subscribers when the leaf was moved, by whomever in this pi. */
export function tree(places: Places): void {
  const { pi } = places;
  places.answer("session/navigate", async (params, ctx) => await navigate(params, ctx));
  places.answer("session/setLabel", (params, ctx) => {
    const { entryId, label } = isObject(params) ? params : {};
    const { id } = requireEntry(ctx, entryId);
    const given = typeof label === "string" ? label : undefined;
    pi.setLabel(id, given);
    places.notify("session/labelled", { entryId: id, label: given ?? null });
    return {};
  });
  places.on("tree", "session_tree", ({ oldLeafId, summaryEntry }, ctx) => {
    // A summary is an entry of its own. Without one the file would still end on the branch that was left.
    if (summaryEntry === undefined) pi.appendEntry(NAVIGATED_TYPE, { from: oldLeafId });
    places.notify("session/navigated", {
      from: oldLeafId ?? null,
      to: ctx.sessionManager.getLeafId() ?? null,
      ...(summaryEntry === undefined ? {} : { summaryEntryId: summaryEntry.id }),
    });
  });
}

async function navigate(params: unknown, ctx: ExtensionContext): Promise<Result<"session/navigate">> {
  const { entryId, summarize } = isObject(params) ? params : {};
  const target = requireEntry(ctx, entryId);
  if (!ctx.isIdle())
    throw new AskRefused("session_busy", "A run or a compaction is on. Wait until it has ended, or abort it.");
  const { sessionManager } = ctx;
  const former = sessionManager.getLeafEntry();
  const content = contentOf(target);
  const end = content === undefined ? target.id : target.parentId;
  // pi itself takes only its very leaf for the place where it is; that may be our mark.
  if (former?.type === "custom" && former.customType === NAVIGATED_TYPE && former.parentId === end) {
    return { outcome: "unchanged", leafId: former.id };
  }
  let cancelled: boolean;
  try {
    ({ cancelled } = await (ctx as ExtensionCommandContext).navigateTree(target.id, { summarize: summarize === true }));
  } catch (thrown) {
    throw new AskRefused("refused_by_pi", `pi did not move in the tree: ${messageOf(thrown)}`.slice(0, 2_000));
  }
  const leafId = sessionManager.getLeafId() ?? null;
  if (cancelled) return { outcome: "cancelled", leafId };
  if (leafId === (former?.id ?? null)) return { outcome: "unchanged", leafId };
  const leaf = sessionManager.getLeafEntry();
  return {
    outcome: "moved",
    leafId,
    ...(content === undefined ? {} : { text: textOf(content) }),
    ...(leaf?.type === "branch_summary" ? { summaryEntryId: leaf.id } : {}),
  };
}

function requireEntry({ sessionManager }: ExtensionContext, entryId: unknown): Entry {
  const entry = typeof entryId === "string" ? sessionManager.getEntry(entryId) : undefined;
  if (entry === undefined) throw new AskRefused("entry_not_found", "The session has no entry with this id.");
  return entry;
}

type Entry = NonNullable<ReturnType<ExtensionContext["sessionManager"]["getEntry"]>>;

/** The content of a message before which pi goes, so that it can be written again. */
function contentOf(entry: Entry): unknown {
  if (entry.type === "custom_message") return entry.content;
  return entry.type === "message" && entry.message.role === "user" ? entry.message.content : undefined;
}

function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content
    .map((block: unknown) => (isObject(block) && typeof block["text"] === "string" ? block["text"] : ""))
    .join("");
}
