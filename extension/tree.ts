import type { ExtensionCommandContext, ExtensionContext } from "@earendil-works/pi-coding-agent";
import { NAVIGATED_TYPE } from "../protocol/link.ts";
import type { Result } from "../protocol/methods.ts";
import { AskRefused, type Places } from "./engine-port.ts";
import { isObject, messageOf } from "./pi-types.ts";

/** An extension's label may be longer than a client's. */
const maxToldLabel = 200;

/** Moves within the session's tree, sets labels, and tells subscribers when the leaf was moved, by whomever in this pi. */
export function tree(places: Places): void {
  const { pi } = places;
  places.answer("session/navigate", async (params, ctx) => await navigate(pi, params, ctx));
  places.answer("session/setLabel", (params, ctx) => {
    const { entryId, label } = isObject(params) ? params : {};
    const { id } = requireEntry(ctx, entryId);
    pi.setLabel(id, typeof label === "string" ? label : undefined);
    return {};
  });
  places.onSession((ctx) => tellLabels(ctx, (labelled) => places.notify("session/labelled", labelled)), "tree");
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

type AppendLabel = (targetId: string, label: string | undefined) => string;

/** pi's own method, kept with ours: a reload begins the session again on the same session manager. */
const original = Symbol.for("pi-rpcd.append-label");

/** Tells of each label that is set in the session, also by other extensions: pi sends no event for it. */
function tellLabels(
  { sessionManager }: ExtensionContext,
  tell: (labelled: { readonly entryId: string; readonly label: string | null }) => void,
): void {
  const manager = sessionManager as unknown as { appendLabelChange: AppendLabel & { [original]?: AppendLabel } };
  const append = manager.appendLabelChange[original] ?? manager.appendLabelChange;
  const told: AppendLabel = (entryId, label) => {
    const id = append.call(manager, entryId, label);
    // What cannot be told must not fail the extension that sets the label.
    try {
      tell({ entryId, label: label ? label.slice(0, maxToldLabel).toWellFormed() : null });
    } catch {}
    return id;
  };
  manager.appendLabelChange = Object.assign(told, { [original]: append });
}

async function navigate(pi: Places["pi"], params: unknown, ctx: ExtensionContext): Promise<Result<"session/navigate">> {
  const { entryId, summarize, isAborted } = isObject(params) ? params : {};
  const target = requireEntry(ctx, entryId);
  if (isAborted === true) return { outcome: "cancelled", leafId: ctx.sessionManager.getLeafId() ?? null };
  if (!ctx.isIdle())
    throw new AskRefused("session_busy", "A run or a compaction is on. Wait until it has ended, or abort it.");
  const { sessionManager } = ctx;
  const content = contentOf(target);
  const end = content === undefined ? target.id : target.parentId;
  if (placeOf(sessionManager) === end) return { outcome: "unchanged", leafId: sessionManager.getLeafId() ?? null };
  // pi does not move before a message that is its leaf.
  if (sessionManager.getLeafId() === target.id) pi.appendEntry(NAVIGATED_TYPE, { from: target.id });
  const formerId = sessionManager.getLeafId() ?? null;
  let cancelled: boolean;
  try {
    ({ cancelled } = await (ctx as ExtensionCommandContext).navigateTree(target.id, { summarize: summarize === true }));
  } catch (thrown) {
    throw new AskRefused("refused_by_pi", `pi did not move in the tree: ${messageOf(thrown)}`.slice(0, 2_000));
  }
  const leafId = sessionManager.getLeafId() ?? null;
  if (cancelled) return { outcome: "cancelled", leafId };
  if (leafId === formerId) return { outcome: "unchanged", leafId };
  const place = placeOf(sessionManager);
  const isSummary = place !== null && place !== end && sessionManager.getEntry(place)?.type === "branch_summary";
  return {
    outcome: "moved",
    leafId,
    ...(content === undefined ? {} : { text: textOf(content) }),
    ...(isSummary ? { summaryEntryId: place } : {}),
  };
}

/** The entry where the branch ends, without labels and marks after it: those do not change what the model sees. */
function placeOf(sessionManager: ExtensionContext["sessionManager"]): string | null {
  let entry = sessionManager.getLeafEntry();
  while (entry?.type === "label" || (entry?.type === "custom" && entry.customType === NAVIGATED_TYPE)) {
    entry = entry.parentId === null ? undefined : sessionManager.getEntry(entry.parentId);
  }
  return entry?.id ?? null;
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
