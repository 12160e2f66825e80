import type { By } from "../../protocol/client-identity.ts";
import type { WireError } from "../../protocol/errors.ts";
import type { LostPrompt } from "../../protocol/session.ts";
import { limits } from "../configuration/limits.ts";
import type { SessionCosts } from "../context/cost/session-costs.ts";
import { attributionOf } from "../core/attribution.ts";
import { Idleness } from "../core/idleness.ts";
import type { SessionCore } from "../core/session-core.ts";
import type { Pushing } from "../delivery/pushing.ts";
import { Receipts } from "../delivery/session-receipts.ts";
import type { Journal } from "../log/journal.ts";
import { checkSettled } from "../log/settled-check.ts";
import type { Child } from "../pi/child.ts";
import type { PiEvent } from "../pi/records.ts";
import type { PromptStore } from "../store/prompts.ts";
import { PromptLedger } from "./prompt-ledger.ts";
import { Prompting } from "./prompting.ts";
import { assistantEnd } from "./run-outcome.ts";
import { type RunStarter, Runs } from "./runs.ts";

export interface SessionPromptsOptions {
  readonly core: SessionCore;
  readonly journal: Journal;
  readonly store: PromptStore;
  readonly pushing: Pushing;
  readonly costs: Pick<SessionCosts, "admitPrompt">;
  readonly onLost: (lost: readonly LostPrompt[]) => void;
}

/** The prompts of one session, their outcomes, and the runs they start. */
export class SessionPrompts {
  readonly ledger: PromptLedger;
  readonly runs: Runs;
  readonly prompting: Prompting;
  readonly idleness: Idleness;
  readonly #core: SessionCore;
  readonly #pushing: Pushing;
  readonly #receipts = new Receipts();
  #isCompacting = false;

  constructor({ core, journal, store, pushing, costs, onLost }: SessionPromptsOptions) {
    this.#core = core;
    this.#pushing = pushing;
    const { sessionId } = core;
    const receipts = this.#receipts;
    this.idleness = new Idleness(() => this.#isIdle(pushing));
    this.ledger = new PromptLedger({
      sessionId,
      store,
      receipts,
      file: () => core.file,
      say: (prompt, by) => journal.say("prompt/updated", { ...attributionOf(by), prompt }),
      onLost,
      onChange: () => this.idleness.changed(),
      ...limits.prompts,
    });
    this.runs = new Runs({
      sessionId,
      store: store.runs,
      receipts,
      onStarted: ({ runId, promptIds, by }) => {
        receipts.tell(undefined, () => journal.say("run/started", { ...attributionOf(by), runId, promptIds }));
        const { presumed } = this.ledger;
        if (presumed !== undefined) this.ledger.accepted(presumed.promptId, "started", runId);
      },
      onEnded: (end) => this.ledger.runEnded(end),
      sayEnded: ({ by, text: _text, textTruncated: _truncated, ...end }) =>
        journal.say("run/ended", { ...attributionOf(by), ...end }),
    });
    this.prompting = new Prompting(core, this.ledger, {
      admitPrompt: () => costs.admitPrompt(),
      beforePrompt: (child) => pushing.beforePrompt(child),
      handOver: () => pushing.handOver(),
    });
  }

  /** The prompt or push that starts a run now, and its client. A run may begin before pi has answered its prompt. */
  starter(promptId: string | undefined): RunStarter | undefined {
    const prompt = promptId === undefined ? this.ledger.presumed : this.ledger.find(promptId);
    if (prompt === undefined) return attributionOf(this.#pushing.starter() ?? onlyOne(this.prompting.asking));
    return { promptId: prompt.promptId, ...attributionOf(prompt.by) };
  }

  /**
   * The client whose prompt or push caused the current activity of extensions: it started the run, or pi has not
   * answered its prompt yet, as during a command. Undefined if several clients did, because pi does not tell them
   * apart.
   */
  get owner(): By | undefined {
    const { asking } = this.prompting;
    return onlyOne(this.#core.runId === undefined ? asking : [this.runs.startedBy, ...asking]);
  }

  messageEnded(event: PiEvent): void {
    const end = assistantEnd(event["message"]);
    if (end !== undefined) {
      this.runs.assistantEnded(end);
      return;
    }
    const promptId = this.ledger.messageEnded(event, this.#core.runId);
    if (promptId !== undefined) this.runs.took(promptId);
  }

  /** pi reports that it has settled. If true, calls `onSettled` with pi's `aborted`. */
  settled(child: Child | undefined, event: PiEvent, onSettled: (aborted: boolean | undefined) => void): void {
    const { aborted } = event;
    const { runId } = this.#core;
    if (child === undefined) return;
    checkSettled(child, this.runs.isActive, () => {
      if (this.#core.runId === runId) onSettled(typeof aborted === "boolean" ? aborted : undefined);
    });
  }

  /** The helper reports that the run has ended by itself: pi has processed everything outside its queue. */
  queueSettled(): void {
    this.ledger.runSettled();
  }

  compacting(isOn: boolean): void {
    this.#isCompacting = isOn;
    this.idleness.changed();
  }

  /** Ends prompts and runs of a former daemon. */
  recover(): void {
    this.runs.recover();
  }

  /** Resolves when the losses of a child's end are known. */
  async childEnded(): Promise<void> {
    this.#isCompacting = false;
    this.idleness.changed();
    await this.ledger.childEnded();
    await this.told();
  }

  /** Resolves when all changes so far have been reported. */
  async told(): Promise<void> {
    await this.#receipts.told();
  }

  /** Rejects all waits, because the session is over. */
  close(why: WireError): void {
    this.ledger.close(why);
    this.idleness.close(why);
  }

  #isIdle(pushing: Pushing): boolean {
    const { state, scope } = this.#core;
    const isQuiet = state.kind === "idle" || state.kind === "hibernated" || state.kind === "crashed";
    return isQuiet && !this.#isCompacting && scope.isEmpty && this.ledger.isQuiet && !pushing.wantsChild;
  }
}

function onlyOne([first, ...others]: readonly (By | undefined)[]): By | undefined {
  return others.every((by) => by?.clientId === first?.clientId) ? first : undefined;
}
