import type { ExtensionContext, SessionBoundaryDraft } from "@earendil-works/pi-coding-agent";
import { BranchView, fromLeaf } from "../../../extension/branch-view.ts";
import type { HostPort } from "../../../extension/engine-port.ts";
import type { AgentMessage, SessionEntry } from "../../../extension/pi-types.ts";
import { isRecord } from "../../../protocol/objects.ts";
import { EntryFold } from "../../folds.ts";
import type { RequestEntries } from "../map/request-entries.ts";

/**
 * `customType` of the entries with edits made between runs. pi accepts edits only at boundaries of runs, so requests
 * apply the entry until the next boundary, where pi gets the same edits.
 */
export const EDITS_MARK = "pi-rpcd.edits";

const part = "pendingEdits";
const maxEdits = 10_000;
type Session = ExtensionContext["sessionManager"];
type Content = readonly unknown[];
type Edit = Extract<SessionBoundaryDraft, { type: "context_edit" }>;
type Editable = Extract<AgentMessage, { role: "assistant" | "toolResult" }>;

/** An entry's new content. */
interface NewContent {
  readonly targetId: string;
  readonly content: Content;
}

/** `owner`: the part that makes the edits. */
export function editsData(owner: string, edits: readonly NewContent[]): object {
  return { v: 1, part: owner, edits: edits.map(({ targetId, content }) => ({ targetId, content })) };
}

export function editDraft({ targetId, content }: NewContent): Edit {
  return { type: "context_edit", targetId, replacement: { content: [...content] as never } };
}

interface Recorded extends NewContent {
  readonly heldBy: string;
  readonly owner: string;
}
/** Edits by target entry. */
type Open = ReadonlyMap<string, Recorded>;
const none: Open = new Map();

interface OpenAt {
  readonly leaf: string | undefined;
  readonly edits: Open;
}

export interface PendingEditsNeeds {
  readonly entries: Pick<RequestEntries, "entryOf" | "copied" | "need">;
  readonly isUnanswered: HostPort["isUnanswered"];
}

/** Recorded edits that pi does not have yet: a fold over the entries, filtered by the branch. */
export class PendingEdits {
  readonly #host: PendingEditsNeeds;
  readonly #hindered = new Map<string, (ctx: ExtensionContext) => boolean>();
  readonly #recorded = new EntryFold((): Recorded[] => [], takeEdits);
  /** The edits that are open at a leaf. */
  #open: (OpenAt & { readonly all: readonly Recorded[]; readonly count: number }) | undefined;

  constructor(host: PendingEditsNeeds) {
    this.#host = host;
  }

  /** Registers when a part's edits rest; without it, they always apply. */
  rest(owner: string, isHindered: (ctx: ExtensionContext) => boolean): void {
    this.#hindered.set(owner, isHindered);
  }

  /** All open edits by target entry, also those that rest. */
  on({ sessionManager }: Pick<ExtensionContext, "sessionManager">): Open {
    const all = this.#recorded.of(sessionManager);
    if (all.length === 0) return none;
    const known = this.#open?.all === all && this.#open.count === all.length ? this.#open : undefined;
    const edits = (known && stillOpen(known, sessionManager)) ?? this.#openIn(all, sessionManager);
    this.#open = { all, count: all.length, leaf: sessionManager.getLeafEntry()?.id, edits };
    return edits;
  }

  #openIn(all: readonly Recorded[], sessionManager: Session): Open {
    const branch = new BranchView(sessionManager);
    return new Map(
      all.flatMap((one) => {
        const { heldBy, targetId, content } = one;
        const isOpen = branch.has(heldBy) && branch.isKept(targetId) && !branch.isEdited(targetId);
        return isOpen && isValidFor(sessionManager.getEntry(targetId), content) ? [[targetId, one] as const] : [];
      }),
    );
  }

  /** Whether any edit applies now. */
  isNeeded(ctx: ExtensionContext): boolean {
    return this.#applying(ctx).length > 0;
  }

  drafts(ctx: ExtensionContext): Edit[] {
    return this.#applying(ctx).map(editDraft);
  }

  /** The contents that apply now, by target entry. */
  contents(ctx: ExtensionContext): ReadonlyMap<string, Content> {
    return new Map(this.#applying(ctx).map(({ targetId, content }) => [targetId, content]));
  }

  /** The messages of a request with the pending edits applied. */
  applied(messages: readonly AgentMessage[], ctx: ExtensionContext): readonly AgentMessage[] | undefined {
    const open = this.contents(ctx);
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

  #applying(ctx: ExtensionContext): Recorded[] {
    return [...this.on(ctx).values()].filter(({ owner }) => this.#hindered.get(owner)?.(ctx) !== true);
  }
}

/** Applies pending edits to requests, and gives them to pi at the next boundary, before all other edits. */
export function addPendingEdits(
  { boundary, pipeline }: Pick<HostPort, "boundary" | "pipeline">,
  { entries }: Pick<PendingEditsNeeds, "entries">,
  pending: PendingEdits,
): void {
  boundary.contribute(
    part,
    ({ ctx }) => {
      const drafts = pending.drafts(ctx);
      return drafts.length === 0 ? undefined : { drafts };
    },
    { edits: "deduplication" },
  );
  entries.need((_messages, ctx) => pending.isNeeded(ctx));
  pipeline.use("context_with_system", "bash", (messages, ctx) => pending.applied(messages, ctx), part);
}

/**
 * The edits that are still open if the branch has only grown, so that a long one is not read again for each message.
 * `undefined`: it has not, or a compaction came, or an entry with edits, which may be known from an earlier visit.
 */
function stillOpen({ leaf, edits }: OpenAt, session: Session): Open | undefined {
  const edited = new Set<string>();
  for (const entry of fromLeaf(session)) {
    if (entry.id === leaf)
      return edited.size === 0 ? edits : new Map([...edits].filter(([targetId]) => !edited.has(targetId)));
    if (entry.type === "compaction" || isMark(entry)) return undefined;
    if (entry.type === "context_edit" && edits.has(entry.targetId)) edited.add(entry.targetId);
  }
  return undefined;
}

function isMark(entry: SessionEntry): entry is Extract<SessionEntry, { type: "custom" }> {
  return entry.type === "custom" && entry.customType === EDITS_MARK;
}

function takeEdits(all: Recorded[], entry: SessionEntry): void {
  if (!isMark(entry)) return;
  const { data } = entry;
  if (!isRecord(data) || data["v"] !== 1 || !Array.isArray(data["edits"])) return;
  // Before masking used them, only pruning wrote such entries.
  const owner = typeof data["part"] === "string" ? data["part"] : "strategies";
  for (const edit of data["edits"].slice(0, maxEdits) as unknown[]) {
    if (!isRecord(edit) || typeof edit["targetId"] !== "string" || !Array.isArray(edit["content"])) continue;
    const { targetId, content } = edit;
    all.push({ heldBy: entry.id, owner, targetId, content: content as Content });
  }
}

function isEditable(message: AgentMessage): message is Editable {
  return message.role === "assistant" || message.role === "toolResult";
}

/**
 * Whether the content is valid for the entry: texts and images for a result; for an answer, only call arguments may
 * differ.
 */
function isValidFor(entry: SessionEntry | undefined, content: Content): boolean {
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
