import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { Boundary, BoundaryProposal } from "../../../extension/boundary.ts";
import { fromLeaf } from "../../../extension/branch-view.ts";
import type { AgentMessage, SessionEntry, SessionReader } from "../../../extension/pi-types.ts";
import { withSoundMarks } from "../../parts/cache/marks.ts";
import type { Blocks, PruningServices } from "../pruning-services.ts";
import type { WindowUsage } from "../usage.ts";
import { nudgeFor } from "./cadence.ts";
import type { NudgeHistories, NudgeHistory } from "./history.ts";
import { NUDGE_MARK, type Nudge, nudgeData } from "./record.ts";
import { type NudgeCandidate, nudgeText } from "./text.ts";

type Host = Pick<PruningServices, "notify" | "cacheRule" | "pruning" | "off" | "prompts" | "mode"> & {
  readonly blocks: Pick<Blocks, "on">;
};

interface NudgeSources {
  readonly histories: NudgeHistories;
  readonly windowUsage: Pick<WindowUsage, "of">;
  readonly candidates: (ctx: ExtensionContext) => readonly NudgeCandidate[];
}

const part = "nudges";
/** Reminders that wait for a boundary. */
const mostWaiting = 16;

/** Reminds the model to compress, by a message at the end of one request. */
export function addNudges(
  { onSession, pipeline, boundary: writer }: Pick<PruningServices, "onSession" | "pipeline" | "boundary">,
  host: Host,
  sources: NudgeSources,
): void {
  const nudges = new Nudges(host, sources);
  onSession(() => nudges.begin(), part);
  pipeline.use("context_with_system", "nudge", (messages, ctx) => nudges.stage(messages, ctx), part);
  pipeline.use(
    "before_provider_request",
    "marks",
    (payload) =>
      host.pruning().enabled
        ? withSoundMarks(payload, (message) => host.cacheRule.changes.isPassingMessage(message))
        : undefined,
    part,
  );
  writer.contribute(part, (boundary) => nudges.atBoundary(boundary));
}

class Nudges {
  readonly #host: Host;
  readonly #sources: NudgeSources;
  /** The decision for the last request; a retry gets the same reminder. */
  #made: { readonly at: string; readonly text: string | undefined } | undefined;
  /** Reminders that are not on the branch yet. */
  #waiting: readonly Nudge[] = [];
  /** The failure for which a pause was already reported. */
  #toldAt: number | undefined;

  constructor(host: Host, sources: NudgeSources) {
    this.#host = host;
    this.#sources = sources;
  }

  begin(): void {
    this.#made = undefined;
    this.#waiting = [];
    this.#toldAt = undefined;
  }

  stage(messages: readonly AgentMessage[], ctx: ExtensionContext): readonly AgentMessage[] | undefined {
    if (this.#host.off(ctx) !== undefined) return undefined;
    // The model must not compress.
    if (this.#host.pruning().compress.permission === "deny") return undefined;
    const at = shownLast(ctx.sessionManager);
    if (at === undefined) return undefined;
    if (this.#made?.at !== at) this.#made = { at, text: this.#decide(at, messages, ctx) };
    const { text } = this.#made;
    if (text === undefined) return undefined;
    // No cache mark must be placed on the reminder.
    this.#host.cacheRule.passing(text);
    const timestamp = messages.at(-1)?.timestamp ?? 0;
    return [...messages, { role: "user", content: [{ type: "text", text }], timestamp }];
  }

  #decide(at: string, messages: readonly AgentMessage[], ctx: ExtensionContext): string | undefined {
    const { mode, blocks, prompts, pruning, notify } = this.#host;
    const { windowUsage, candidates } = this.#sources;
    const history = this.#history(ctx);
    this.#tellBroken(history);
    const usage = windowUsage.of(messages, ctx);
    const kind = nudgeFor({ history, usage, isManual: mode.of(ctx) === "manual" }, pruning());
    if (kind === undefined || usage === undefined) return undefined;
    const { active } = blocks.on(ctx);
    const text = nudgeText(kind, { usage, blocks: active, candidates: candidates(ctx) }, prompts);
    this.#waiting = [...this.#waiting, { kind, at }].slice(-mostWaiting);
    notify("pruning/nudged", { kind, usage: usage.share, tokens: Math.round(usage.tokens) });
    return text;
  }

  #history({ sessionManager }: ExtensionContext): NudgeHistory {
    const { histories } = this.#sources;
    const { pruning } = this.#host;
    const { requests } = histories.on(sessionManager, pruning().nudges);
    // Drop reminders of unanswered requests, because the model did not see them.
    this.#waiting = this.#waiting.filter(({ at }) => (histories.requestsAt(at) ?? requests) < requests);
    return histories.on(sessionManager, pruning().nudges, this.#waiting);
  }

  #tellBroken({ brokenAt, failures }: NudgeHistory): void {
    const { breakerCooldown } = this.#host.pruning().nudges;
    if (brokenAt !== undefined && brokenAt !== this.#toldAt) {
      const message = `${failures} compressions in a row have failed: there are none before ${breakerCooldown} more requests or the user's next message.`;
      this.#host.notify("pruning/degraded", { reason: "breaker", message });
    }
    this.#toldAt = brokenAt;
  }

  /** Drafts the records of answered reminders until the branch contains them. */
  atBoundary({ ctx }: Boundary): BoundaryProposal | undefined {
    const { histories } = this.#sources;
    if (this.#waiting.length === 0 && this.#host.off(ctx) !== undefined) return undefined;
    this.#tellBroken(this.#history(ctx));
    this.#waiting = this.#waiting.filter(({ at }) => !histories.isRecorded(at));
    if (this.#waiting.length === 0) return undefined;
    return {
      drafts: this.#waiting.map((nudge) => ({ type: "custom", customType: NUDGE_MARK, data: nudgeData(nudge) })),
    };
  }
}

/** The newest entry that a request shows, which is the same for a retry. */
function shownLast(session: SessionReader): string | undefined {
  for (const entry of fromLeaf(session)) if (isShown(entry)) return entry.id;
  return undefined;
}

/** Entry types other than messages that a request shows. Edits, which pi writes after a failed answer, do not count. */
const shownTypes: ReadonlySet<SessionEntry["type"]> = new Set(["custom_message", "compaction", "branch_summary"]);

function isShown(entry: SessionEntry): boolean {
  if (entry.type !== "message") return shownTypes.has(entry.type);
  const { message } = entry;
  if (message.role === "system") return false;
  return message.role !== "assistant" || (message.stopReason !== "error" && message.stopReason !== "aborted");
}
