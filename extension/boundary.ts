import type { BoundaryState, ExtensionContext, SessionBoundaryDraft } from "@earendil-works/pi-coding-agent";
import { isObject, type SessionReader } from "./pi-types.ts";
import type { Fault } from "./request-pipeline.ts";

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
}

/** May take its time, for a summary: the run waits for it. */
export type BoundaryContributor = (boundary: Boundary) => BoundaryWish | undefined | Promise<BoundaryWish | undefined>;

interface Contributor {
  readonly name: string;
  readonly contributor: BoundaryContributor;
  readonly isLast: boolean;
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
 */
export class BoundaryWriter {
  readonly #contributors = new Map<string, Contributor>();
  readonly #fault: Fault;

  constructor(fault: Fault) {
    this.#fault = fault;
  }

  /** `isLast`: asked behind all others, so that what it gives away does not wait for their summaries. */
  contribute(name: string, contributor: BoundaryContributor, { isLast = false } = {}): void {
    this.#contributors.set(name, { name, contributor, isLast });
  }

  /** The answer to pi. `undefined` when there is nothing to add, so that pi's defaults hold. A promise if a contributor gives one. */
  write(boundary: Boundary): BoundaryAnswer | undefined | Promise<BoundaryAnswer | undefined> {
    const all = [...this.#contributors.values()];
    return this.#ask([...all.filter(({ isLast }) => !isLast), ...all.filter(({ isLast }) => isLast)], [], boundary);
  }

  /** Asks one after the other, and waits only where there is something to wait for. */
  #ask(
    contributors: readonly Contributor[],
    before: readonly BoundaryWish[],
    boundary: Boundary,
  ): BoundaryAnswer | undefined | Promise<BoundaryAnswer | undefined> {
    const wishes = [...before];
    for (const [at, { name, contributor }] of contributors.entries()) {
      const failed = (thrown: unknown): undefined => {
        this.#fault(`${boundary.hook}/${name}`, thrown, name);
        return undefined;
      };
      try {
        const wish = contributor(boundary);
        if (wish instanceof Promise) {
          const rest = contributors.slice(at + 1);
          return wish
            .catch(failed)
            .then((given) => this.#ask(rest, given === undefined ? wishes : [...wishes, given], boundary));
        }
        if (wish !== undefined) wishes.push(wish);
      } catch (thrown) {
        failed(thrown);
      }
    }
    return this.#answer(wishes, boundary);
  }

  #answer(wishes: readonly BoundaryWish[], boundary: Boundary): BoundaryAnswer | undefined {
    const before = boundary.state.entries;
    const drafts = this.#sound(
      wishes.flatMap((wish) => wish.drafts).toSorted((a, b) => rank[a.type] - rank[b.type]),
      boundary,
    );
    const goesOn = wishes.some((wish) => wish.continue === true);
    if (drafts.length === 0 && !goesOn) return undefined;
    return { entries: [...before, ...drafts], continue: boundary.state.continue || goesOn };
  }

  #sound(drafts: readonly SessionBoundaryDraft[], { hook, state, ctx }: Boundary): SessionBoundaryDraft[] {
    const accepted: SessionBoundaryDraft[] = [];
    for (const draft of drafts) {
      const wrong = whatIsWrong(draft, [...state.entries, ...accepted], ctx.sessionManager);
      if (wrong === undefined) accepted.push(draft);
      else this.#fault(`${hook}/${draft.type}`, new Error(`A draft was left out: ${wrong}.`));
    }
    return accepted;
  }
}

/** The rules by which pi refuses a draft, and ours: one edit for each target and one compaction at a boundary. */
function whatIsWrong(
  draft: SessionBoundaryDraft,
  earlier: readonly SessionBoundaryDraft[],
  session: SessionReader,
): string | undefined {
  switch (draft.type) {
    case "custom":
      return isName(draft.customType) ? undefined : "its customType is no text";
    case "custom_message":
      if (!isName(draft.customType)) return "its customType is no text";
      if (typeof draft.display !== "boolean") return "its display is no boolean";
      return isContent(draft.content) ? undefined : "its content is neither text nor blocks of text and images";
    case "context_edit":
      if (earlier.some((other) => other.type === "context_edit" && other.targetId === draft.targetId)) {
        return "its target is edited already";
      }
      if (!isReplacement(draft.replacement)) return "its replacement has no content";
      return isEditable(draft.targetId, session) ? undefined : "its target is not on the branch or cannot be edited";
    case "compaction":
      if (earlier.some((other) => other.type === "compaction")) return "there is a compaction already";
      if (typeof draft.summary !== "string") return "its summary is no text";
      if (draft.firstKeptEntryId === null || isOnBranch(draft.firstKeptEntryId, session)) return undefined;
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

const editableRoles: ReadonlySet<string> = new Set(["user", "assistant", "toolResult"]);

function isEditable(entryId: string, session: SessionReader): boolean {
  const entry = session.getEntry(entryId);
  if (entry === undefined || !isOnBranch(entryId, session)) return false;
  return entry.type === "custom_message" || (entry.type === "message" && editableRoles.has(entry.message.role));
}

function isOnBranch(entryId: string, session: SessionReader): boolean {
  let entry = session.getLeafEntry();
  while (entry !== undefined && entry.id !== entryId) {
    entry = entry.parentId === null ? undefined : session.getEntry(entry.parentId);
  }
  return entry !== undefined;
}
