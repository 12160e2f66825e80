import type { ExtensionContext, SessionBoundaryDraft } from "@earendil-works/pi-coding-agent";
import { costOfFailed } from "../../compaction/compaction.ts";
import type { Summary } from "../../compaction/summary.ts";

type Owed = Extract<SessionBoundaryDraft, { type: "custom" }>;

/** A run asks before each of its requests. More is not written down at one boundary. */
const mostOwed = 64;

/** Summaries that came to nothing: the next try waits, and what they have cost is written down. */
export class FailedSummaries {
  #session: string | undefined;
  /** The newest entry when the last one failed. */
  #leaf: string | undefined;
  readonly #owed: Owed[] = [];

  add(failed: Extract<Summary, { failed: string }>, ctx: ExtensionContext): void {
    this.#session = ctx.sessionManager.getSessionId();
    this.#leaf = ctx.sessionManager.getLeafEntry()?.id;
    const { model } = ctx;
    const cost = costOfFailed(failed, model === undefined ? "" : `${model.provider}/${model.id}`);
    if (this.#owed.length < mostOwed) this.#owed.push(...cost);
  }

  /** Whether fewer turns than these have passed on the branch since one has failed. */
  isResting(turns: number, { sessionManager }: ExtensionContext): boolean {
    if (this.#leaf === undefined || sessionManager.getSessionId() !== this.#session) return false;
    let passed = 0;
    let entry = sessionManager.getLeafEntry();
    while (entry !== undefined && entry.id !== this.#leaf && passed < turns) {
      if (entry.type === "message" && entry.message.role === "assistant") passed += 1;
      entry = entry.parentId === null ? undefined : sessionManager.getEntry(entry.parentId);
    }
    return entry !== undefined && passed < turns;
  }

  /** What is to be written, once. */
  owed(): Owed[] {
    return this.#owed.splice(0);
  }
}
