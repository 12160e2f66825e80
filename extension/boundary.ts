import type { BoundaryState, ExtensionContext, SessionBoundaryDraft } from "@earendil-works/pi-coding-agent";
import { isRecord } from "../protocol/objects.ts";
import { BranchView } from "./branch-view.ts";
import type { Fault } from "./request-pipeline.ts";
import { unlessAborted } from "./unless-aborted.ts";

/**
 * Time limit for a contributor's promise, and the grace period after that or an abort. Contributors set lower limits
 * themselves.
 */
const withinMs = 200_000;
const graceMs = 5_000;

/** Session entries that a part proposes at a boundary. */
export interface BoundaryProposal {
  readonly drafts: readonly SessionBoundaryDraft[];
  /** Whether the run must continue with another request. Absent: no influence. */
  readonly continue?: boolean;
}

/** A boundary between two requests of a run. */
export type BoundaryHook = "turn_end" | "agent_before_settle";

export interface Boundary {
  readonly hook: BoundaryHook;
  readonly state: BoundaryState;
  readonly ctx: ExtensionContext;
  /** Entries edited by earlier contributors at this boundary. */
  readonly edited?: ReadonlySet<string>;
}

/** May return a promise, for example for a summary; the run waits for it. */
export type BoundaryContributor = (
  boundary: Boundary,
) => BoundaryProposal | undefined | Promise<BoundaryProposal | undefined>;

/** Purposes of edits by priority. If two contributors edit an entry, the earlier purpose wins. */
const editOrder = ["deduplication", "stale", "errors", "masking", "decay"] as const;
export type EditKind = (typeof editOrder)[number];

interface Contributor {
  readonly name: string;
  readonly contributor: BoundaryContributor;
  readonly isLast: boolean;
  readonly edits: EditKind | undefined;
  readonly mayPropose: () => boolean;
}

/** A draft with the priority of its edit. */
interface RankedDraft {
  readonly draft: SessionBoundaryDraft;
  readonly priority: number;
}

interface Proposals {
  readonly drafts: readonly RankedDraft[];
  readonly continues: boolean;
}

export interface BoundaryAnswer {
  entries: SessionBoundaryDraft[];
  continue: boolean;
}

/** Pushes come last, after all other changes to the transcript. */
const rank: Readonly<Record<SessionBoundaryDraft["type"], number>> = {
  custom: 0,
  context_edit: 1,
  compaction: 2,
  custom_message: 3,
};

/**
 * The only code that returns something from `turn_end` and `agent_before_settle`. pi accepts all drafts of a boundary
 * or none. Therefore each draft is checked against pi's rules, and invalid ones are left out. Earlier proposals of
 * other extensions keep their position.
 *
 * An edit is skipped silently if its entry is already edited, has left the context, is covered by a block, or carries a
 * push that the model has not answered. Contributors propose it again later.
 */
export class BoundaryWriter {
  readonly #contributors = new Map<string, Contributor>();
  readonly #fault: Fault;
  readonly #isUnanswered: (entryId: string) => boolean;
  #isProtected: (entryId: string, ctx: ExtensionContext) => boolean = () => false;

  constructor(fault: Fault, isUnanswered: (entryId: string) => boolean = () => false) {
    this.#fault = fault;
    this.#isUnanswered = isUnanswered;
  }

  /**
   * `isLast`: asked after all others, so its drafts do not wait for their summaries. `edits`: purpose of its edits.
   * `mayPropose`: whether it must be asked at the next boundary; default: always.
   */
  contribute(
    name: string,
    contributor: BoundaryContributor,
    {
      isLast = false,
      edits,
      mayPropose = () => true,
    }: { readonly isLast?: boolean; readonly edits?: EditKind; readonly mayPropose?: () => boolean } = {},
  ): void {
    this.#contributors.set(name, { name, contributor, isLast, edits, mayPropose });
  }

  /** Whether any contributor must be asked at the next boundary. */
  get isNeeded(): boolean {
    return [...this.#contributors.values()].some(({ mayPropose }) => mayPropose());
  }

  /** Rejects edits of entries for which the function returns true, such as entries covered by a block. */
  protect(isProtected: (entryId: string, ctx: ExtensionContext) => boolean): void {
    this.#isProtected = isProtected;
  }

  /** Whether any edit of this entry would be rejected now. */
  isProtected(entryId: string, ctx: ExtensionContext): boolean {
    return this.#isProtected(entryId, ctx);
  }

  /** Returns the answer to pi: `undefined` when there is nothing to add, a promise if a contributor returns one. */
  write(boundary: Boundary): BoundaryAnswer | undefined | Promise<BoundaryAnswer | undefined> {
    const all = [...this.#contributors.values()].toSorted((a, b) => priorityOf(a.edits) - priorityOf(b.edits));
    const ordered = [...all.filter(({ isLast }) => !isLast), ...all.filter(({ isLast }) => isLast)];
    return this.#ask(ordered, { drafts: [], continues: false }, boundary);
  }

  /** Asks contributors in order, and becomes asynchronous only when one returns a promise. */
  #ask(
    contributors: readonly Contributor[],
    before: Proposals,
    boundary: Boundary,
  ): BoundaryAnswer | undefined | Promise<BoundaryAnswer | undefined> {
    let proposals = before;
    for (const [at, { name, contributor, edits }] of contributors.entries()) {
      const failed = (thrown: unknown): undefined => {
        this.#fault(`${boundary.hook}/${name}`, thrown, name);
        return undefined;
      };
      try {
        const proposal = contributor({ ...boundary, edited: editedBy(proposals) });
        if (proposal instanceof Promise) {
          const rest = contributors.slice(at + 1);
          return bounded(proposal, boundary)
            .catch(failed)
            .then((given) => this.#ask(rest, withProposal(proposals, given, edits), boundary));
        }
        proposals = withProposal(proposals, proposal, edits);
      } catch (thrown) {
        failed(thrown);
      }
    }
    return this.#answer(proposals, boundary);
  }

  #answer({ drafts: ranked, continues }: Proposals, boundary: Boundary): BoundaryAnswer | undefined {
    const before = boundary.state.entries;
    const inOrder = ranked.toSorted((a, b) => rank[a.draft.type] - rank[b.draft.type] || a.priority - b.priority);
    const drafts = this.#validDrafts(
      inOrder.map(({ draft }) => draft),
      boundary,
    );
    if (drafts.length === 0 && !continues) return undefined;
    return { entries: [...before, ...drafts], continue: boundary.state.continue || continues };
  }

  #validDrafts(drafts: readonly SessionBoundaryDraft[], { hook, state, ctx }: Boundary): SessionBoundaryDraft[] {
    const branch = new BranchView(ctx.sessionManager);
    const accepted = new Map<number, SessionBoundaryDraft>();
    const positions = drafts.map((_draft, at) => at);
    const isCompaction = (at: number): boolean => drafts[at]?.type === "compaction";
    // Compactions first: an entry that a compaction drops needs no edit.
    for (const at of [...positions.filter(isCompaction), ...positions.filter((at) => !isCompaction(at))]) {
      const draft = drafts[at] as SessionBoundaryDraft;
      const earlier = [...state.entries, ...accepted.values()];
      const wrong = draftError(draft, earlier, branch);
      if (wrong !== undefined) this.#fault(`${hook}/${draft.type}`, new Error(`A draft was left out: ${wrong}.`));
      else if (draft.type !== "context_edit" || this.#isEditAllowed(draft.targetId, earlier, branch, ctx)) {
        accepted.set(at, draft);
      }
    }
    return drafts.filter((_draft, at) => accepted.has(at));
  }

  #isEditAllowed(
    targetId: string,
    earlier: readonly SessionBoundaryDraft[],
    branch: BranchView,
    ctx: ExtensionContext,
  ): boolean {
    if (this.#isProtected(targetId, ctx)) return false;
    if (earlier.some((other) => other.type === "context_edit" && other.targetId === targetId)) return false;
    const compaction = earlier.find((other) => other.type === "compaction");
    return !branch.isEdited(targetId) && branch.isKept(targetId, compaction) && !this.#isUnanswered(targetId);
  }
}

interface BoundaryHandler {
  readonly isNeeded: () => boolean;
  /** Registers the handler; returns the function that removes it. */
  readonly register: () => () => void;
}

/**
 * Registers the handlers of boundaries only while they are needed. At a boundary with a handler, whatever its answer,
 * pi creates the messages of extensions again. pi's cache warming then sees a different context and stops. pi looks up
 * handlers at each boundary, and `pi.on` returns the function that removes one.
 */
export class BoundaryHooks {
  readonly #handlers: readonly BoundaryHandler[];
  readonly #registered = new Map<BoundaryHandler, () => void>();

  constructor(handlers: Readonly<Record<BoundaryHook, BoundaryHandler>>) {
    this.#handlers = Object.values(handlers);
  }

  /** Call when a handler may have become necessary, and in each turn, because most needs end within one turn. */
  update(): void {
    for (const handler of this.#handlers) {
      const remove = this.#registered.get(handler);
      const isNeeded = handler.isNeeded();
      if (isNeeded && remove === undefined) this.#registered.set(handler, handler.register());
      if (isNeeded || remove === undefined) continue;
      this.#registered.delete(handler);
      remove();
    }
  }
}

function bounded<T>(promise: Promise<T>, { ctx }: Boundary): Promise<T> {
  const late = AbortSignal.timeout(withinMs);
  return unlessAborted(promise, ctx.signal === undefined ? late : AbortSignal.any([ctx.signal, late]), graceMs);
}

function withProposal(
  { drafts, continues }: Proposals,
  proposal: BoundaryProposal | undefined,
  edits: EditKind | undefined,
): Proposals {
  if (proposal === undefined) return { drafts, continues };
  const priority = priorityOf(edits);
  return {
    drafts: [...drafts, ...proposal.drafts.map((draft) => ({ draft, priority }))],
    continues: continues || proposal.continue === true,
  };
}

function priorityOf(edits: EditKind | undefined): number {
  return edits === undefined ? editOrder.length : editOrder.indexOf(edits);
}

function editedBy({ drafts }: Proposals): ReadonlySet<string> {
  return new Set(drafts.flatMap(({ draft }) => (draft.type === "context_edit" ? [draft.targetId] : [])));
}

/** Applies pi's rules for drafts, and one of ours: at most one compaction at a boundary. */
function draftError(
  draft: SessionBoundaryDraft,
  earlier: readonly SessionBoundaryDraft[],
  branch: BranchView,
): string | undefined {
  switch (draft.type) {
    case "custom":
      return isName(draft.customType) ? undefined : "its customType must be a non-empty string";
    case "custom_message":
      if (!isName(draft.customType)) return "its customType must be a non-empty string";
      if (typeof draft.display !== "boolean") return "its display is not a boolean";
      return isContent(draft.content) ? undefined : "its content is neither text nor blocks of text and images";
    case "context_edit":
      if (!isReplacement(draft.replacement)) return "its replacement has no content";
      return branch.isEditable(draft.targetId) ? undefined : "its target is not on the branch or cannot be edited";
    case "compaction":
      if (earlier.some((other) => other.type === "compaction")) return "the boundary already has a compaction";
      if (typeof draft.summary !== "string") return "its summary is not a string";
      if (draft.firstKeptEntryId === null || branch.has(draft.firstKeptEntryId)) return undefined;
      return "its firstKeptEntryId is not on the branch";
    default:
      return "its type is unknown to pi";
  }
}

function isName(value: unknown): boolean {
  return typeof value === "string" && value !== "";
}

function isContent(content: unknown): boolean {
  if (typeof content === "string") return true;
  return Array.isArray(content) && content.every(isBlock);
}

/** Block types are not checked: an assistant's content can hold more than text and images. */
function isReplacement(replacement: unknown): boolean {
  if (replacement === null) return true;
  return isRecord(replacement) && (typeof replacement["content"] === "string" || Array.isArray(replacement["content"]));
}

function isBlock(block: unknown): boolean {
  if (!isRecord(block)) return false;
  if (block["type"] === "text") return typeof block["text"] === "string";
  return block["type"] === "image" && typeof block["data"] === "string" && typeof block["mimeType"] === "string";
}
