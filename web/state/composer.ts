import { computed, type ReadonlySignal, signal } from "@preact/signals";
import { type Delivery, type Params, type Result, type SessionInfo, WireError } from "../../client/browser.ts";
import type { Daemon, SessionNotification } from "./daemon.ts";
import type { Draft, DraftView } from "./drafts.ts";
import type { Who } from "./items.ts";
import { nameOf, whoOf } from "./notes.ts";
import { done, type Outcome, outcomeOf, wordsOf } from "./outcome.ts";
import { oneLine } from "./pi-values.ts";
import { act, read } from "./reading.ts";

export type { DraftView } from "./drafts.ts";

/** `steer`: into this run. `followUp`: at its end. Without a run both are `prompt`. */
export type Way = "prompt" | "steer" | "followUp";

/** Something that waits to enter the conversation. Its words are foreign text. */
export interface Waiting {
  readonly id: string;
  readonly kind: "prompt" | "push";
  /** `nextTurn`: goes along with the next prompt. */
  readonly how: "steer" | "followUp" | "nextTurn";
  readonly words: string;
  readonly who: Who;
  /** Takes it back. A prompt of this page comes back into the draft. Undefined: it has no way back. */
  readonly takeBack?: () => Promise<Outcome>;
}

/** Whether one can write here, and if not, why: who controls the session, a token that only observes, a lost connection. */
export type Permission = { readonly kind: "yes" } | { readonly kind: "no"; readonly words: string };

export interface Composer {
  readonly draft: DraftView;
  readonly permission: ReadonlySignal<Permission>;
  readonly isRunning: ReadonlySignal<boolean>;
  readonly isSending: ReadonlySignal<boolean>;
  /** What waits, in order. */
  readonly waiting: ReadonlySignal<readonly Waiting[]>;
  /** Sends the draft and empties it. If it is refused or its outcome is unknown, the draft stays and `problem` says why. */
  send(way: Way): Promise<Outcome>;
  /** Sends pi a prompt again that was lost with its process. */
  resend(promptId: string): Promise<Outcome>;
  /** Ends the run. Resolves with what it did to what waits. */
  stop(): Promise<Outcome<string>>;
}

export interface ComposerOptions {
  readonly daemon: Daemon;
  readonly sessionId: string;
  readonly draft: Draft;
  readonly info: ReadonlySignal<SessionInfo | undefined>;
  readonly isConnected: ReadonlySignal<boolean>;
  readonly mayPrompt: ReadonlySignal<boolean>;
  readonly isGone: ReadonlySignal<boolean>;
}

type Queue = Result<"session/getQueue">;
const emptyQueue: Queue = { steering: [], followUp: [] };
/** Pushes in these states wait. */
const waitingStates = ["accepted", "held", "parked"] as const;
const shownChars = 300;

export class SessionComposer implements Composer {
  readonly #options: ComposerOptions;
  readonly #isSending = signal(false);
  readonly #queue = signal<Queue>(emptyQueue);
  readonly #pushes = signal<readonly Delivery[]>([]);
  readonly permission: ReadonlySignal<Permission>;
  readonly isRunning: ReadonlySignal<boolean>;
  readonly waiting: ReadonlySignal<readonly Waiting[]>;
  readonly #stopWatching: () => void;
  /** Aborted when the connection is lost: what was sent may not have arrived. */
  #lost = new AbortController();
  #isReading = false;
  #isOutdated = false;
  #isClosed = false;

  constructor(options: ComposerOptions) {
    this.#options = options;
    const { info, daemon } = options;
    this.permission = computed(() => this.#permission());
    this.isRunning = computed(() => info.value?.runId !== undefined || info.value?.state === "running");
    this.waiting = computed(() => this.#waiting());
    this.#stopWatching = daemon.onConnection(({ kind }) => {
      if (kind !== "connected") this.#lost.abort(new Error("The connection to the daemon was lost."));
      else {
        this.#lost = new AbortController();
        this.refresh();
      }
    });
    this.refresh();
  }

  get draft(): DraftView {
    return this.#options.draft;
  }

  get isSending(): ReadonlySignal<boolean> {
    return this.#isSending;
  }

  async send(way: Way): Promise<Outcome> {
    const { draft } = this.#options;
    const permission = this.permission.value;
    const refusal = permission.kind === "no" ? permission.words : draft.refusal;
    if (this.#isSending.value) return done;
    if (refusal !== undefined) return this.#failed(refusal);
    this.#isSending.value = true;
    const { promptId } = draft;
    const { text, images } = draft.content;
    const signal = this.#lost.signal;
    const outcome = await outcomeOf(() => this.#prompt(way, { text, images, promptId }, signal));
    this.#isSending.value = false;
    if (outcome.kind === "done") {
      // What was written in the meantime is another draft.
      if (draft.promptId === promptId) draft.clear();
      this.refresh();
      return done;
    }
    if (!signal.aborted) return this.#failed(outcome.words);
    return this.#afterLoss(promptId);
  }

  async resend(promptId: string): Promise<Outcome> {
    const { daemon, sessionId } = this.#options;
    return await outcomeOf(async () => {
      const { text } = await read(daemon, "prompt/get", { promptId });
      await act(daemon, "session/prompt", { sessionId, text, ifRunning: "followUp" }, this.#lost.signal);
      return undefined;
    });
  }

  async stop(): Promise<Outcome<string>> {
    const { daemon, sessionId } = this.#options;
    return await outcomeOf(async () => {
      const { aborted, deliveries } = await act(daemon, "session/abort", { sessionId }, this.#lost.signal);
      const { steering, followUp } = await read(daemon, "session/getQueue", { sessionId });
      this.refresh();
      return stopWords(aborted, deliveries, steering.length + followUp.length);
    });
  }

  /** A notification of the session. */
  notified(notification: SessionNotification): void {
    const { name, params } = notification;
    if (name === "delivery/updated") this.#push(params.delivery);
    const isQueue = name === "session/event" && params.event.type === "queue_update";
    if (isQueue || name === "prompt/updated" || name === "run/started" || name === "run/ended") this.refresh();
  }

  /** Reads what waits again. */
  refresh(): void {
    this.#isOutdated = true;
    if (!this.#isReading) void this.#read();
  }

  close(): void {
    this.#isClosed = true;
    this.#stopWatching();
  }

  async #read(): Promise<void> {
    const { daemon, sessionId } = this.#options;
    this.#isReading = true;
    while (this.#isOutdated && !this.#isClosed) {
      this.#isOutdated = false;
      const outcome = await outcomeOf(() =>
        Promise.all([
          read(daemon, "session/getQueue", { sessionId }),
          read(daemon, "delivery/list", { sessionId, states: [...waitingStates], limit: 500 }),
        ]),
      );
      if (outcome.kind === "refused") continue;
      const [queue, { deliveries }] = outcome.value;
      this.#queue.value = queue;
      this.#pushes.value = [...deliveries].reverse();
    }
    this.#isReading = false;
  }

  #push(delivery: Delivery): void {
    const others = this.#pushes.value.filter(({ deliveryId }) => deliveryId !== delivery.deliveryId);
    const isWaiting = (waitingStates as readonly string[]).includes(delivery.state);
    if (isWaiting) {
      const place = this.#pushes.value.findIndex(({ deliveryId }) => deliveryId === delivery.deliveryId);
      this.#pushes.value = place === -1 ? [...others, delivery] : others.toSpliced(place, 0, delivery);
    } else if (others.length < this.#pushes.value.length) this.#pushes.value = others;
  }

  #prompt(
    way: Way,
    { text, images, promptId }: { readonly promptId: string } & Draft["content"],
    signal: AbortSignal,
  ): Promise<Result<"session/prompt">> {
    const { daemon, sessionId } = this.#options;
    const common = { sessionId, text, promptId, ...(images.length === 0 ? {} : { images: [...images] }) };
    if (way === "steer") return act(daemon, "session/steer", common, signal);
    if (way === "followUp") return act(daemon, "session/followUp", common, signal);
    const params: Params<"session/prompt"> = { ...common, ifRunning: "refuse" };
    return act(daemon, "session/prompt", params, signal);
  }

  /** The connection was lost before the answer. The daemon is asked whether it has the prompt: it never comes twice. */
  async #afterLoss(promptId: string): Promise<Outcome> {
    const { daemon, draft } = this.#options;
    this.#isSending.value = true;
    draft.fail("The connection was lost while the message was being sent.");
    try {
      await read(daemon, "prompt/get", { promptId });
      if (draft.promptId === promptId) draft.clear();
      return done;
    } catch (error) {
      const isUnknown = error instanceof WireError && error.kind === "prompt_not_found";
      const words = isUnknown ? "The message was not sent." : `It is not known whether it was sent: ${wordsOf(error)}`;
      return this.#failed(`The connection was lost. ${words}`);
    } finally {
      this.#isSending.value = false;
    }
  }

  #failed(words: string): Outcome {
    this.#options.draft.fail(words);
    return { kind: "refused", words };
  }

  #permission(): Permission {
    const { isConnected, mayPrompt, isGone, info, daemon } = this.#options;
    if (!isConnected.value) return no("There is no connection to the daemon.");
    if (!mayPrompt.value) return no("This page only reads. Run `pi-rpcd web` without --read-only to write.");
    const session = info.value;
    if (isGone.value || session?.state === "closed" || session?.state === "closing")
      return no("The session is closed.");
    if (session?.ephemeral === "lost") return no("The session's pi has ended, and the conversation with it.");
    const { policy, controller } = session?.control ?? { policy: "shared" };
    if (policy !== "exclusive" || controller?.clientId === daemon.id) return { kind: "yes" };
    if (controller === undefined) return no("The session takes only what its controller sends, and has none now.");
    return no(`${nameOf(whoOf(controller, daemon.id))} controls the session. Only it can change the session.`);
  }

  #waiting(): readonly Waiting[] {
    const { steering, followUp } = this.#queue.value;
    const prompts = (entries: Queue["steering"], how: "steer" | "followUp"): readonly Waiting[] =>
      entries.map((entry, index) => this.#waitingPrompt(entry, how, index));
    const pushes = this.#pushes.value.map((push) => this.#waitingPush(push));
    return [...prompts(steering, "steer"), ...prompts(followUp, "followUp"), ...pushes];
  }

  #waitingPrompt({ text, promptId, by }: Queue["steering"][number], how: "steer" | "followUp", index: number): Waiting {
    return {
      id: promptId ?? `${how}-${index}`,
      kind: "prompt",
      how,
      words: oneLine(text, shownChars),
      who: whoOf(by, this.#options.daemon.id),
      ...(promptId === undefined ? {} : { takeBack: () => this.#takeBackPrompt(promptId, text) }),
    };
  }

  #waitingPush({ deliveryId, customType, deliverAs, preview = "" }: Delivery): Waiting {
    return {
      id: deliveryId,
      kind: "push",
      how: deliverAs,
      words: oneLine(preview === "" ? customType : `${customType}: ${preview}`, shownChars),
      who: { kind: "unknown" },
      takeBack: () => this.#takeBackPush(deliveryId),
    };
  }

  async #takeBackPrompt(promptId: string, text: string): Promise<Outcome> {
    const { daemon, draft } = this.#options;
    const outcome = await outcomeOf(() => act(daemon, "prompt/cancel", { promptId }));
    this.refresh();
    if (outcome.kind === "refused") return outcome;
    const { cancelled, prompt } = outcome.value;
    if (!cancelled) return { kind: "refused", words: "It is too late: the message is in the conversation." };
    if (whoOf(prompt.by, daemon.id).kind === "you") draft.giveBack(text);
    return done;
  }

  async #takeBackPush(deliveryId: string): Promise<Outcome> {
    const { daemon } = this.#options;
    const outcome = await outcomeOf(() => act(daemon, "delivery/cancel", { deliveryId }));
    this.refresh();
    if (outcome.kind === "refused") return outcome;
    return outcome.value.cancelled ? done : { kind: "refused", words: "It is too late: the model may have it." };
  }
}

function no(words: string): Permission {
  return { kind: "no", words };
}

/** What stopping a run did, in sentences. */
function stopWords(aborted: boolean, effects: Result<"session/abort">["deliveries"], queued: number): string {
  const count = (states: readonly string[]): number => effects.filter(({ state }) => states.includes(state)).length;
  const [kept, dropped] = [count(["parked", "held", "accepted"]), count(["dropped", "cancelled", "failed"])];
  const sentences = [
    aborted ? "The run was stopped." : "There was no run.",
    ...(queued > 0 ? [`${many(queued, "message")} still ${queued === 1 ? "waits" : "wait"}.`] : []),
    ...(kept > 0 ? [`${many(kept, "push")} ${kept === 1 ? "waits" : "wait"} for the next run.`] : []),
    ...(dropped > 0 ? [`${many(dropped, "push")} ${dropped === 1 ? "was" : "were"} dropped.`] : []),
  ];
  return sentences.join(" ");
}

function many(count: number, noun: "message" | "push"): string {
  const plural = noun === "push" ? "pushes" : "messages";
  return count === 1 ? `1 ${noun}` : `${count} ${plural}`;
}
