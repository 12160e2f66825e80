import type { By } from "../../protocol/client-identity.ts";
import type { WireError } from "../../protocol/errors.ts";
import type { MessageOrigin } from "../../protocol/event.ts";
import { isRecord } from "../../protocol/objects.ts";
import { limits } from "../configuration/limits.ts";
import { attributionOf } from "../core/attribution.ts";
import type { SessionContext } from "../core/session-context.ts";
import { Receipts } from "../delivery/session-receipts.ts";
import type { DeliveryTracker } from "../delivery/tracker.ts";
import type { LastEvents } from "../log/last-events.ts";
import type { Child } from "../pi/child.ts";
import type { PiEvent } from "../pi/records.ts";
import { markedDelivery } from "../pi/session-file.ts";
import type { OwedNotification } from "../store/children.ts";
import type { PromptStore, StoredPrompt } from "../store/prompts.ts";
import { PromptLedger } from "./prompt-ledger.ts";
import { queuedTexts } from "./queued-texts.ts";
import { assistantEnd, type RunStarter, Runs } from "./runs.ts";

export interface SessionPromptsOptions {
  readonly store: PromptStore;
  readonly tracker: Pick<DeliveryTracker, "starter" | "find">;
}

/** The prompts of one session, their outcomes, and the runs they start. `Prompting` sends them to pi. */
export class SessionPrompts {
  readonly ledger: PromptLedger;
  readonly runs: Runs;
  readonly #session: SessionContext;
  readonly #tracker: SessionPromptsOptions["tracker"];
  readonly #receipts: Receipts;
  #isCompacting = false;

  constructor(session: SessionContext, { store, tracker }: SessionPromptsOptions) {
    this.#session = session;
    this.#tracker = tracker;
    const { sessionId, record, journal, events } = session;
    const receipts = new Receipts(({ method, params }) => journal.say(method, params));
    this.#receipts = receipts;
    const ledger = new PromptLedger({
      sessionId,
      store,
      receipts,
      file: () => record.stored.file,
      updated: (prompt, by) => ({ method: "prompt/updated", params: { ...attributionOf(by), prompt } }),
      onLost: (lostPrompts) => events.emit("changed", { lostPrompts }),
      onChange: () => events.emit("workChanged"),
      ...limits.prompts,
    });
    this.ledger = ledger;
    this.runs = new Runs({
      sessionId,
      store: store.runs,
      receipts,
      onStarted: ({ runId, promptIds, by }) => {
        const params = { ...attributionOf(by), runId, promptIds };
        receipts.tell(undefined, () => ({ method: "run/started", params }));
        const { presumed } = ledger;
        if (presumed !== undefined) ledger.accepted(presumed.promptId, "started", runId);
      },
      onEnded: (end, said) => {
        ledger.runEnded(end);
        events.emit("runEnded", end.outcome, said);
      },
      ended: ({ by, text: _text, textTruncated: _truncated, ...end }) => ({
        method: "run/ended",
        params: { ...attributionOf(by), ...end },
      }),
    });
  }

  /** Whether every prompt is in the transcript, and pi does not compact. */
  get isQuiet(): boolean {
    return !this.#isCompacting && this.ledger.isQuiet;
  }

  /** The prompt or push that starts a run now, and its client. A run may begin before pi has answered its prompt. */
  starter(promptId: string | undefined): RunStarter | undefined {
    const prompt = promptId === undefined ? this.ledger.presumed : this.ledger.find(promptId);
    if (prompt !== undefined) return { promptId: prompt.promptId, ...attributionOf(prompt.by) };
    return attributionOf(this.#tracker.starter(this.#session.sessionId) ?? onlyOne(this.ledger.asking));
  }

  /**
   * The client whose prompt or push caused the current activity of extensions: it started the run, or pi has not
   * answered its prompt yet, as during a command. Undefined if several clients did, because pi does not tell them
   * apart.
   */
  get owner(): By | undefined {
    const { asking } = this.ledger;
    return onlyOne(this.runs.runId === undefined ? asking : [this.runs.startedBy, ...asking]);
  }

  /** Receipts that are due and not said yet. */
  get owed(): readonly OwedNotification[] {
    return this.#receipts.owed;
  }

  /** Goes on where a former daemon left them, whose child lives. */
  resume({ message, agent, compaction, queue }: LastEvents): void {
    this.runs.resume({ last: assistantEnd(message?.["message"]), isActive: agent?.type === "agent_start" });
    this.#isCompacting = compaction?.type === "compaction_start";
    if (queue !== undefined) this.ledger.resume(queuedTexts(queue));
  }

  /** Who sent the message that a `message_end` reports, before {@link messageEnded}. Undefined: nothing is known. */
  originOf({ type, message }: PiEvent): MessageOrigin | undefined {
    if (type !== "message_end" || !isRecord(message)) return undefined;
    if (message["role"] === "custom") return this.#originOfPush(message["details"]);
    return message["role"] === "user" ? originOfPrompt(this.ledger.promptOf(message)) : undefined;
  }

  /** The same for an entry that was found in the session file. */
  originOfEntry({ type, id, details }: Readonly<Record<string, unknown>>): MessageOrigin | undefined {
    if (type === "custom_message") return this.#originOfPush(details);
    return type === "message" && typeof id === "string" ? originOfPrompt(this.ledger.foundAs(id)) : undefined;
  }

  #originOfPush(details: unknown): MessageOrigin | undefined {
    const deliveryId = markedDelivery(details);
    const delivery = deliveryId === undefined ? undefined : this.#tracker.find(deliveryId);
    // An extension can name a delivery of another session.
    if (delivery?.sessionId !== this.#session.sessionId) return undefined;
    return attributionOf(delivery.history.find(({ state }) => state === "accepted")?.by);
  }

  messageEnded(event: PiEvent): void {
    const end = assistantEnd(event["message"]);
    if (end !== undefined) {
      this.runs.assistantEnded(end);
      return;
    }
    const promptId = this.ledger.messageEnded(event, this.runs.runId);
    if (promptId !== undefined) this.runs.took(promptId);
  }

  /** pi reports that it has settled. If true, calls `onSettled` with pi's `aborted`. */
  settled(child: Child | undefined, event: PiEvent, onSettled: (aborted: boolean | undefined) => void): void {
    const { aborted } = event;
    const { runId } = this.runs;
    if (child === undefined) return;
    checkSettled(child, this.runs.isActive, () => {
      if (this.runs.runId === runId) onSettled(typeof aborted === "boolean" ? aborted : undefined);
    });
  }

  /** The helper reports that the run has ended by itself: pi has processed everything outside its queue. */
  queueSettled(): void {
    this.ledger.runSettled();
  }

  compacting(isOn: boolean): void {
    this.#isCompacting = isOn;
    this.#session.events.emit("workChanged");
  }

  /** pi has replaced a part of its context. */
  compacted(): void {
    this.runs.compacted();
    this.#session.events.emit("compacted");
  }

  /** Resolves when the losses of a child's end are known. */
  async childEnded(): Promise<void> {
    this.compacting(false);
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
  }
}

function originOfPrompt(prompt: StoredPrompt | undefined): MessageOrigin | undefined {
  return prompt && { promptId: prompt.promptId, ...attributionOf(prompt.by) };
}

function onlyOne([first, ...others]: readonly (By | undefined)[]): By | undefined {
  return others.every((by) => by?.clientId === first?.clientId) ? first : undefined;
}

/**
 * Checks an `agent_settled` event, because pi can send it in the middle of a run: on 0.87.1 a run that an extension
 * starts while a prompt is being prepared competes with it, and the loser reports `agent_settled` (measured). The
 * sign is that pi's agent has started and not ended; pi's state, read after the event, then decides. Without doubt,
 * `onSettled` is called immediately.
 */
function checkSettled(child: Child, isActive: boolean, onSettled: () => void): void {
  if (!isActive) {
    onSettled();
    return;
  }
  const onResponse = ({ data }: { readonly data?: unknown }): void => {
    if (!(isRecord(data) && data["isStreaming"] === true)) onSettled();
  };
  // A child that ends before it answers also ends the run.
  child.send({ type: "get_state" }, { onResponse }).catch(() => {});
}
