import type { ExtensionContext, SessionBoundaryDraft } from "@earendil-works/pi-coding-agent";
import { BranchView } from "../../../extension/branch-view.ts";
import type { AgentMessage, SessionEntry } from "../../../extension/pi-types.ts";
import { isRecord } from "../../../protocol/objects.ts";
import { EntryFold } from "../../folds.ts";
import type { PruningServices } from "../pruning-services.ts";
import type { Replacement } from "./batch.ts";

/**
 * `customType` of the entries with edits made between runs. pi accepts edits only at boundaries of runs, so requests
 * apply the entry until the next boundary, where pi gets the same edits.
 */
export const EDITS_MARK = "pi-rpcd.edits";

const maxEdits = 10_000;
type Content = readonly unknown[];
type Edit = Extract<SessionBoundaryDraft, { type: "context_edit" }>;
type Editable = Extract<AgentMessage, { role: "assistant" | "toolResult" }>;

export function editsData(replacements: readonly Replacement[]): object {
  return { v: 1, edits: replacements.map(({ targetId, content }) => ({ targetId, content })) };
}

export function editDraft({ targetId, content }: Pick<Replacement, "targetId" | "content">): Edit {
  return { type: "context_edit", targetId, replacement: { content: [...content] as never } };
}

interface Recorded {
  readonly heldBy: string;
  readonly targetId: string;
  readonly content: Content;
}
/** Contents by target entry. */
type Open = ReadonlyMap<string, Content>;
const none: Open = new Map();

/** Recorded edits that pi does not have yet: a fold over the entries, filtered by the branch. */
export class PendingEdits {
  readonly #host: Pick<PruningServices, "entries" | "isUnanswered">;
  readonly #recorded = new EntryFold((): Recorded[] => [], takeEdits);
  /** The edits that are open at a leaf. */
  #open:
    | {
        readonly all: readonly Recorded[];
        readonly count: number;
        readonly leaf: string | undefined;
        readonly is: Open;
      }
    | undefined;

  constructor(host: Pick<PruningServices, "entries" | "isUnanswered">) {
    this.#host = host;
  }

  /** Contents by target entry. */
  on({ sessionManager }: Pick<ExtensionContext, "sessionManager">): ReadonlyMap<string, Content> {
    const all = this.#recorded.of(sessionManager);
    if (all.length === 0) return none;
    const leaf = sessionManager.getLeafEntry()?.id;
    const known = this.#open;
    if (known?.all === all && known.count === all.length && known.leaf === leaf) return known.is;
    const branch = new BranchView(sessionManager);
    const is: Open = new Map(
      all.flatMap(({ heldBy, targetId, content }) => {
        const isOpen = branch.has(heldBy) && branch.isKept(targetId) && !branch.isEdited(targetId);
        return isOpen && isFor(sessionManager.getEntry(targetId), content) ? [[targetId, content] as const] : [];
      }),
    );
    this.#open = { all, count: all.length, leaf, is };
    return is;
  }

  drafts(ctx: ExtensionContext): Edit[] {
    return [...this.on(ctx)].map(([targetId, content]) => editDraft({ targetId, content }));
  }

  /** The messages of a request with the pending edits applied. */
  applied(messages: readonly AgentMessage[], ctx: ExtensionContext): readonly AgentMessage[] | undefined {
    const open = this.on(ctx);
    if (open.size === 0) return undefined;
    let isChanged = false;
    const made = messages.map((message) => {
      if (!isEditable(message)) return message;
      const entryId = this.#host.entries.entryOf(message);
      const content = entryId === undefined ? undefined : open.get(entryId);
      if (entryId === undefined || content === undefined || this.#host.isUnanswered(entryId)) return message;
      isChanged = true;
      const copy = { ...message, content } as AgentMessage;
      this.#host.entries.copied(copy, message);
      return copy;
    });
    return isChanged ? made : undefined;
  }
}

function takeEdits(all: Recorded[], entry: SessionEntry): void {
  if (entry.type !== "custom" || entry.customType !== EDITS_MARK) return;
  const { data } = entry;
  if (!isRecord(data) || data["v"] !== 1 || !Array.isArray(data["edits"])) return;
  for (const edit of data["edits"].slice(0, maxEdits) as unknown[]) {
    if (!isRecord(edit) || typeof edit["targetId"] !== "string" || !Array.isArray(edit["content"])) continue;
    all.push({ heldBy: entry.id, targetId: edit["targetId"], content: edit["content"] as Content });
  }
}

function isEditable(message: AgentMessage): message is Editable {
  return message.role === "assistant" || message.role === "toolResult";
}

/**
 * Whether the content is valid for the entry: texts and images for a result; for an answer, only call arguments may
 * differ.
 */
function isFor(entry: SessionEntry | undefined, content: Content): boolean {
  if (entry?.type !== "message" || !isEditable(entry.message)) return false;
  const { message } = entry;
  if (message.role === "toolResult") return content.length > 0 && content.every(isShown);
  return (
    content.length === message.content.length &&
    message.content.every((block, at) => {
      const made = content[at];
      if (!isRecord(made) || made["type"] !== block.type) return false;
      if (block.type !== "toolCall") return JSON.stringify(made) === JSON.stringify(block);
      return made["id"] === block.id && made["name"] === block.name && isRecord(made["arguments"]);
    })
  );
}

function isShown(block: unknown): boolean {
  if (!isRecord(block)) return false;
  if (block["type"] === "text") return typeof block["text"] === "string";
  return block["type"] === "image" && typeof block["data"] === "string" && typeof block["mimeType"] === "string";
}
