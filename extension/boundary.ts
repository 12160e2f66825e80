import type { BoundaryState, ExtensionContext, SessionBoundaryDraft } from "@earendil-works/pi-coding-agent";
import { BranchView } from "./branch-view.ts";
import { isObject } from "./pi-types.ts";
import type { Fault } from "./request-pipeline.ts";
import { unlessAborted } from "./unless-aborted.ts";

/** A contributor's promise is waited for so long, and so long behind that or the run's abort. Its own bounds are lower. */
const withinMs = 200_000;
const graceMs = 5_000;

/** What a part of the helper wants to have written at a boundary. */
export interface BoundaryWish {
  readonly drafts: readonly SessionBoundaryDraft[];
  /** Whether the run has to go on with another request. Absent: it does what it would do. */
  readonly continue?: boolean;
}

/** A boundary between two requests of a run. */
export type BoundaryHook = "turn_end" | "agent_before_settle";

export interface Boundary {
  readonly hook: BoundaryHook;
  readonly state: BoundaryState;
  readonly ctx: ExtensionContext;
  /** Entries that those who were asked before edit at it. */
  readonly edited?: ReadonlySet<string>;
}

/** May take its time, for a summary: the run waits for it. */
export type BoundaryContributor = (boundary: Boundary) => BoundaryWish | undefined | Promise<BoundaryWish | undefined>;

/** What edits are for. The earlier ones are asked first, and have an entry that two want. */
const editOrder = ["deduplication", "stale", "errors", "masking", "decay"] as const;
export type EditKind = (typeof editOrder)[number];

interface Contributor {
  readonly name: string;
  readonly contributor: BoundaryContributor;
  readonly isLast: boolean;
  readonly edits: EditKind | undefined;
  readonly mayWish: () => boolean;
}

/** A draft, and how early its edit has its entry. */
interface Wished {
  readonly draft: SessionBoundaryDraft;
  readonly turn: number;
}

interface Wishes {
  readonly drafts: readonly Wished[];
  readonly goesOn: boolean;
}

export interface BoundaryAnswer {
  entries: SessionBoundaryDraft[];
  continue: boolean;
}

/** pushes come last, behind whatever is done to the transcript before them. */
const rank: Readonly<Record<SessionBoundaryDraft["type"], number>> = {
  custom: 0,
  context_edit: 1,
  compaction: 2,
  custom_message: 3,
};

/**
 * The only code that returns something from `turn_end` and `agent_before_settle`. pi takes all drafts of a boundary or
 * none, and a wrong one of any kind voids the rest. So each is checked against pi's own rules, and a wrong one is left
 * out. What other extensions have proposed before us is kept, in its place.
 *
 * An edit is passed over in silence where its entry is edited already, is not in the context any more, is under a block, or
 * carries a push that the model has not answered. Whoever wants it proposes it again.
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
   * `isLast`: asked behind all others, so that what it gives away does not wait for their summaries. `edits`: what its edits
   * are for. `mayWish`: whether it has to be asked at the next boundary; default: always.
   */
  contribute(
    name: string,
    contributor: BoundaryContributor,
    {
      isLast = false,
      edits,
      mayWish = () => true,
    }: { readonly isLast?: boolean; readonly edits?: EditKind; readonly mayWish?: () => boolean } = {},
  ): void {
    this.#contributors.set(name, { name, contributor, isLast, edits, mayWish });
  }

  /** Whether any contributor has to be asked at the next boundary. */
  get isNeeded(): boolean {
    return [...this.#contributors.values()].some(({ mayWish }) => mayWish());
  }

  /** Leaves out edits of entries of which this says so, such as those that a block stands for. */
  protect(isProtected: (entryId: string, ctx: ExtensionContext) => boolean): void {
    this.#isProtected = isProtected;
  }

  /** Whether an edit of this entry would be left out now, whoever wants it. */
  isProtected(entryId: string, ctx: ExtensionContext): boolean {
    return this.#isProtected(entryId, ctx);
  }

  /** The answer to pi. `undefined` when there is nothing to add, so that pi's defaults hold. A promise if a contributor gives one. */
  write(boundary: Boundary): BoundaryAnswer | undefined | Promise<BoundaryAnswer | undefined> {
    const all = [...this.#contributors.values()].toSorted((a, b) => turnOf(a.edits) - turnOf(b.edits));
    const inTurn = [...all.filter(({ isLast }) => !isLast), ...all.filter(({ isLast }) => isLast)];
    return this.#ask(inTurn, { drafts: [], goesOn: false }, boundary);
  }

  /** Asks one after the other, and waits only where there is something to wait for. */
  #ask(
    contributors: readonly Contributor[],
    before: Wishes,
    boundary: Boundary,
  ): BoundaryAnswer | undefined | Promise<BoundaryAnswer | undefined> {
    let wishes = before;
    for (const [at, { name, contributor, edits }] of contributors.entries()) {
      const failed = (thrown: unknown): undefined => {
        this.#fault(`${boundary.hook}/${name}`, thrown, name);
        return undefined;
      };
      try {
        const wish = contributor({ ...boundary, edited: editedBy(wishes) });
        if (wish instanceof Promise) {
          const rest = contributors.slice(at + 1);
          return bounded(wish, boundary)
            .catch(failed)
            .then((given) => this.#ask(rest, withWish(wishes, given, edits), boundary));
        }
        wishes = withWish(wishes, wish, edits);
      } catch (thrown) {
        failed(thrown);
      }
    }
    return this.#answer(wishes, boundary);
  }

  #answer({ drafts: wished, goesOn }: Wishes, boundary: Boundary): BoundaryAnswer | undefined {
    const before = boundary.state.entries;
    const inOrder = wished.toSorted((a, b) => rank[a.draft.type] - rank[b.draft.type] || a.turn - b.turn);
    const drafts = this.#sound(
      inOrder.map(({ draft }) => draft),
      boundary,
    );
    if (drafts.length === 0 && !goesOn) return undefined;
    return { entries: [...before, ...drafts], continue: boundary.state.continue || goesOn };
  }

  #sound(drafts: readonly SessionBoundaryDraft[], { hook, state, ctx }: Boundary): SessionBoundaryDraft[] {
    const branch = new BranchView(ctx.sessionManager);
    const accepted = new Map<number, SessionBoundaryDraft>();
    const places = drafts.map((_draft, at) => at);
    const isCompaction = (at: number): boolean => drafts[at]?.type === "compaction";
    // What a compaction drops needs no edit.
    for (const at of [...places.filter(isCompaction), ...places.filter((place) => !isCompaction(place))]) {
      const draft = drafts[at] as SessionBoundaryDraft;
      const earlier = [...state.entries, ...accepted.values()];
      const wrong = whatIsWrong(draft, earlier, branch);
      if (wrong !== undefined) this.#fault(`${hook}/${draft.type}`, new Error(`A draft was left out: ${wrong}.`));
      else if (draft.type !== "context_edit" || this.#isEditWanted(draft.targetId, earlier, branch, ctx)) {
        accepted.set(at, draft);
      }
    }
    return drafts.filter((_draft, at) => accepted.has(at));
  }

  #isEditWanted(
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
 * Registers the handlers of boundaries only while they are needed. At a boundary with a handler, whatever its answer, pi
 * creates the messages of extensions again. The part of pi that keeps the provider's cache warm then sees another context
 * and stops. pi looks up handlers at each boundary, and `pi.on` returns the function that removes one.
 */
export class BoundaryHooks {
  readonly #handlers: readonly BoundaryHandler[];
  readonly #registered = new Map<BoundaryHandler, () => void>();

  constructor(handlers: Readonly<Record<BoundaryHook, BoundaryHandler>>) {
    this.#handlers = Object.values(handlers);
  }

  /** Must be called when a handler may have become necessary, and in each turn, because most needs end within one. */
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

function withWish({ drafts, goesOn }: Wishes, wish: BoundaryWish | undefined, edits: EditKind | undefined): Wishes {
  if (wish === undefined) return { drafts, goesOn };
  const turn = turnOf(edits);
  return {
    drafts: [...drafts, ...wish.drafts.map((draft) => ({ draft, turn }))],
    goesOn: goesOn || wish.continue === true,
  };
}

function turnOf(edits: EditKind | undefined): number {
  return edits === undefined ? editOrder.length : editOrder.indexOf(edits);
}

function editedBy({ drafts }: Wishes): ReadonlySet<string> {
  return new Set(drafts.flatMap(({ draft }) => (draft.type === "context_edit" ? [draft.targetId] : [])));
}

/** The rules by which pi refuses a draft, and ours: one compaction at a boundary. */
function whatIsWrong(
  draft: SessionBoundaryDraft,
  earlier: readonly SessionBoundaryDraft[],
  branch: BranchView,
): string | undefined {
  switch (draft.type) {
    case "custom":
      return isName(draft.customType) ? undefined : "its customType is no text";
    case "custom_message":
      if (!isName(draft.customType)) return "its customType is no text";
      if (typeof draft.display !== "boolean") return "its display is no boolean";
      return isContent(draft.content) ? undefined : "its content is neither text nor blocks of text and images";
    case "context_edit":
      if (!isReplacement(draft.replacement)) return "its replacement has no content";
      return branch.isEditable(draft.targetId) ? undefined : "its target is not on the branch or cannot be edited";
    case "compaction":
      if (earlier.some((other) => other.type === "compaction")) return "there is a compaction already";
      if (typeof draft.summary !== "string") return "its summary is no text";
      if (draft.firstKeptEntryId === null || branch.has(draft.firstKeptEntryId)) return undefined;
      return "what it keeps first is not on the branch";
    default:
      return "pi has no such draft";
  }
}

function isName(value: unknown): boolean {
  return typeof value === "string" && value !== "";
}

function isContent(content: unknown): boolean {
  if (typeof content === "string") return true;
  return Array.isArray(content) && content.every(isBlock);
}

/** An assistant's content may hold more than text and images. */
function isReplacement(replacement: unknown): boolean {
  if (replacement === null) return true;
  return isObject(replacement) && (typeof replacement["content"] === "string" || Array.isArray(replacement["content"]));
}

function isBlock(block: unknown): boolean {
  if (!isObject(block)) return false;
  if (block["type"] === "text") return typeof block["text"] === "string";
  return block["type"] === "image" && typeof block["data"] === "string" && typeof block["mimeType"] === "string";
}
