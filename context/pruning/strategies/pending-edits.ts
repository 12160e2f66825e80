import type { ExtensionContext, SessionBoundaryDraft } from "@earendil-works/pi-coding-agent";
import { BranchView } from "../../../extension/branch-view.ts";
import { type AgentMessage, isObject, type SessionEntry } from "../../../extension/pi-types.ts";
import type { PruningServices } from "../pruning-services.ts";
import type { Replacement } from "./batch.ts";

/**
 * `customType` of the entries with edits made between runs. pi accepts edits only at boundaries of runs, so requests
 * apply the entry until the next boundary, where pi gets the same edits.
 */
export const EDITS_MARK = "pi-rpcd.edits";

const maxEdits = 10_000;
type Session = ExtensionContext["sessionManager"];
type Content = readonly unknown[];
type Edit = Extract<SessionBoundaryDraft, { type: "context_edit" }>;
type Editable = Extract<AgentMessage, { role: "assistant" | "toolResult" }>;

export function editsData(replacements: readonly Replacement[]): object {
  return { v: 1, edits: replacements.map(({ targetId, content }) => ({ targetId, content })) };
}

export function editDraft({ targetId, content }: Pick<Replacement, "targetId" | "content">): Edit {
  return { type: "context_edit", targetId, replacement: { content: [...content] as never } };
}

/** Recorded edits that pi does not have yet: a fold over the entries, filtered by the branch. */
export class PendingEdits {
  readonly #host: Pick<PruningServices, "entries" | "isUnanswered">;
  #session = "";
  #seen = 0;
  #last: string | undefined;
  readonly #all: { readonly heldBy: string; readonly targetId: string; readonly content: Content }[] = [];
  #leaf: string | undefined;
  #open: ReadonlyMap<string, Content> = new Map();

  constructor(host: Pick<PruningServices, "entries" | "isUnanswered">) {
    this.#host = host;
  }

  /** Contents by target entry. */
  on({ sessionManager }: Pick<ExtensionContext, "sessionManager">): ReadonlyMap<string, Content> {
    this.#follow(sessionManager);
    if (this.#all.length === 0) return this.#open;
    const leaf = sessionManager.getLeafEntry()?.id;
    if (leaf === this.#leaf) return this.#open;
    const branch = new BranchView(sessionManager);
    this.#leaf = leaf;
    this.#open = new Map(
      this.#all.flatMap(({ heldBy, targetId, content }) => {
        const isOpen = branch.has(heldBy) && branch.isKept(targetId) && !branch.isEdited(targetId);
        return isOpen && isFor(sessionManager.getEntry(targetId), content) ? [[targetId, content] as const] : [];
      }),
    );
    return this.#open;
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

  #follow(session: Session): void {
    const entries = session.getEntries();
    const id = session.getSessionId();
    const isSame = id === this.#session && (this.#seen === 0 || entries[this.#seen - 1]?.id === this.#last);
    if (!isSame) {
      this.#session = id;
      this.#seen = 0;
      this.#all.length = 0;
      this.#open = new Map();
    }
    if (!isSame || this.#seen !== entries.length) this.#leaf = undefined;
    for (; this.#seen < entries.length; this.#seen += 1) this.#take(entries[this.#seen] as SessionEntry);
    this.#last = entries.at(-1)?.id;
  }

  #take(entry: SessionEntry): void {
    if (entry.type !== "custom" || entry.customType !== EDITS_MARK) return;
    const { data } = entry;
    if (!isObject(data) || data["v"] !== 1 || !Array.isArray(data["edits"])) return;
    for (const edit of data["edits"].slice(0, maxEdits) as unknown[]) {
      if (!isObject(edit) || typeof edit["targetId"] !== "string" || !Array.isArray(edit["content"])) continue;
      this.#all.push({ heldBy: entry.id, targetId: edit["targetId"], content: edit["content"] as Content });
    }
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
      if (!isObject(made) || made["type"] !== block.type) return false;
      if (block.type !== "toolCall") return JSON.stringify(made) === JSON.stringify(block);
      return made["id"] === block.id && made["name"] === block.name && isObject(made["arguments"]);
    })
  );
}

function isShown(block: unknown): boolean {
  if (!isObject(block)) return false;
  if (block["type"] === "text") return typeof block["text"] === "string";
  return block["type"] === "image" && typeof block["data"] === "string" && typeof block["mimeType"] === "string";
}
