import type { ExtensionCommandContext, ExtensionContext } from "@earendil-works/pi-coding-agent";
import { NAVIGATED_TYPE } from "../protocol/link.ts";
import type { Result } from "../protocol/methods.ts";
import { isRecord } from "../protocol/objects.ts";
import { fromLeaf } from "./branch-view.ts";
import { AskRefused, type HostPort } from "./engine-port.ts";
import { messageOf } from "./pi-types.ts";

/** Labels of extensions can be longer than those of clients. */
const maxReportedLabel = 200;

/** Navigates the session's tree, sets labels, and notifies subscribers of every move of the leaf in this pi. */
export function tree(host: HostPort): void {
  const { pi } = host;
  host.answer("session/navigate", async (params, ctx) => await navigate(pi, params, ctx));
  host.answer("session/setLabel", (params, ctx) => {
    const { entryId, label } = isRecord(params) ? params : {};
    const { id } = requireEntry(ctx, entryId);
    pi.setLabel(id, typeof label === "string" ? label : undefined);
    return {};
  });
  host.onSession((ctx) => reportLabels(ctx, (labelled) => host.notify("session/labelled", labelled)), "tree");
  host.on("tree", "session_tree", ({ oldLeafId, summaryEntry }, ctx) => {
    // A summary is an entry of its own. Without one the file would still end on the previous branch.
    if (summaryEntry === undefined) pi.appendEntry(NAVIGATED_TYPE, { from: oldLeafId });
    host.notify("session/navigated", {
      from: oldLeafId ?? null,
      to: ctx.sessionManager.getLeafId() ?? null,
      ...(summaryEntry === undefined ? {} : { summaryEntryId: summaryEntry.id }),
    });
  });
}

type AppendLabel = (targetId: string, label: string | undefined) => string;

/** pi's original method, stored on our replacement: a reload starts the session again on the same session manager. */
const original = Symbol.for("pi-rpcd.append-label");

/** Reports each label set in the session, also by other extensions, because pi sends no event for it. */
function reportLabels(
  { sessionManager }: ExtensionContext,
  report: (labelled: { readonly entryId: string; readonly label: string | null }) => void,
): void {
  const manager = sessionManager as unknown as { appendLabelChange: AppendLabel & { [original]?: AppendLabel } };
  const append = manager.appendLabelChange[original] ?? manager.appendLabelChange;
  const appendAndReport: AppendLabel = (entryId, label) => {
    const id = append.call(manager, entryId, label);
    // A failed report must not affect the extension that sets the label.
    try {
      report({ entryId, label: label ? label.slice(0, maxReportedLabel).toWellFormed() : null });
    } catch {}
    return id;
  };
  manager.appendLabelChange = Object.assign(appendAndReport, { [original]: append });
}

async function navigate(
  pi: HostPort["pi"],
  params: unknown,
  ctx: ExtensionContext,
): Promise<Result<"session/navigate">> {
  const { entryId, summarize, isAborted } = isRecord(params) ? params : {};
  const target = requireEntry(ctx, entryId);
  if (isAborted === true) return { outcome: "cancelled", leafId: ctx.sessionManager.getLeafId() ?? null };
  if (!ctx.isIdle())
    throw new AskRefused("session_busy", "A run or a compaction is active. Wait until it has ended, or abort it.");
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

/** The last entry of the branch that the model sees, without labels and marks after it. */
function placeOf(sessionManager: ExtensionContext["sessionManager"]): string | null {
  for (const entry of fromLeaf(sessionManager)) {
    const isMark = entry.type === "label" || (entry.type === "custom" && entry.customType === NAVIGATED_TYPE);
    if (!isMark) return entry.id;
  }
  return null;
}

function requireEntry({ sessionManager }: ExtensionContext, entryId: unknown): Entry {
  const entry = typeof entryId === "string" ? sessionManager.getEntry(entryId) : undefined;
  if (entry === undefined) throw new AskRefused("entry_not_found", "The session has no entry with this id.");
  return entry;
}

type Entry = NonNullable<ReturnType<ExtensionContext["sessionManager"]["getEntry"]>>;

/** The content of a message if pi moves to the entry before it, so that the message can be edited. */
function contentOf(entry: Entry): unknown {
  if (entry.type === "custom_message") return entry.content;
  return entry.type === "message" && entry.message.role === "user" ? entry.message.content : undefined;
}

function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content
    .map((block: unknown) => (isRecord(block) && typeof block["text"] === "string" ? block["text"] : ""))
    .join("");
}
