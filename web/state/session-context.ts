import { batch, type ReadonlySignal, type Signal, signal } from "@preact/signals";
import { type Result, WireError } from "../../client/browser.ts";
import type { Daemon, FeedListener, SessionNotification } from "./daemon.ts";
import { type Outcome, outcomeOf, wordsOf } from "./outcome.ts";
import type { Page } from "./page.ts";
import { act, read } from "./reading.ts";
import { Rereading } from "./rereading.ts";

export type Inspected = Result<"optimisation/inspect">;
export type Pruned = Result<"pruning/inspect">;
export type Block = Pruned["blocks"][number];
export type ContextChange = Result<"pruning/sweep">;
export type Compaction = Result<"session/compact">["compaction"];

/** What people can do about a context. */
export type ContextAction =
  | { readonly kind: "compact" }
  | { readonly kind: "compress" }
  | { readonly kind: "sweep" }
  | { readonly kind: "open"; readonly block: Block }
  | { readonly kind: "close"; readonly block: Block };

/** What pi has said of a session's context. What was known once stays. */
export type LastKnown<Value> =
  | { readonly kind: "asking" }
  | { readonly kind: "known"; readonly value: Value }
  /** No pi has said it. */
  | { readonly kind: "unknown" }
  | { readonly kind: "refused"; readonly words: string };

/** What fills the context of a session, and what people can do about it. */
export interface SessionContext {
  readonly inspected: ReadonlySignal<LastKnown<Inspected>>;
  /** Refused where pruning is off. */
  readonly pruned: ReadonlySignal<LastKnown<Pruned>>;
  readonly isAsking: ReadonlySignal<boolean>;
  /** Reads what is known, and again after what changes it, until the returned function is called. Asks no pi. */
  look(): () => void;
  /** Asks pi. `isAsleep`: it is started first. */
  ask(isAsleep: boolean): Promise<Outcome>;
  /** What a person is about to do. It says before what it costs. */
  readonly prepared: Signal<ContextAction | undefined>;
  /** Replaces the older part by a summary of the model, which must keep what the text says. */
  compact(keep: string): Promise<Outcome<Compaction>>;
  /** Asks the model to compress, or, with `wait`, between two answers of the current run. */
  compress(focus: string, wait: boolean): Promise<Outcome<ContextChange>>;
  /** Prunes the outputs of the newest calls; without a number what the strategies choose. */
  sweep(last: number | undefined, wait: boolean): Promise<Outcome<ContextChange>>;
  /** Puts the messages of a block back into the context. */
  open(block: string): Promise<Outcome<ContextChange>>;
  /** Puts a block that was opened back into the place of its messages. */
  close(block: string): Promise<Outcome<ContextChange>>;
}

export interface SessionContextOptions {
  readonly daemon: Daemon;
  readonly page: Page;
  readonly sessionId: string;
}

export class KnownContext implements SessionContext {
  readonly #options: SessionContextOptions;
  readonly #inspected = signal<LastKnown<Inspected>>({ kind: "asking" });
  readonly #pruned = signal<LastKnown<Pruned>>({ kind: "asking" });
  readonly #isAsking = signal(false);
  readonly prepared = signal<ContextAction | undefined>(undefined);
  readonly #looks = new Set<() => void>();
  readonly #again: Rereading;

  constructor(options: SessionContextOptions) {
    this.#options = options;
    this.#again = new Rereading({ page: options.page, read: () => this.#read(true) });
  }

  get inspected(): ReadonlySignal<LastKnown<Inspected>> {
    return this.#inspected;
  }

  get pruned(): ReadonlySignal<LastKnown<Pruned>> {
    return this.#pruned;
  }

  get isAsking(): ReadonlySignal<boolean> {
    return this.#isAsking;
  }

  look(): () => void {
    const { daemon, sessionId } = this.#options;
    const listener: FeedListener = {
      begin: () => {},
      resume: () => this.#again.changed(),
      gap: ({ onlyDeltas }) => {
        if (onlyDeltas !== true) this.#again.changed();
      },
      receive: (notification) => {
        if (changesContext(notification)) this.#again.changed();
      },
      end: () => {},
    };
    const unlisten = daemon.session(sessionId).listen(listener);
    const unwatch = this.#again.watch();
    const stop = (): void => {
      unlisten();
      unwatch();
      this.#looks.delete(stop);
    };
    this.#looks.add(stop);
    this.#again.changed();
    return stop;
  }

  async ask(isAsleep: boolean): Promise<Outcome> {
    const { daemon, sessionId } = this.#options;
    this.#isAsking.value = true;
    const outcome = await outcomeOf(async () => {
      // A question starts no pi; a command does.
      if (isAsleep) await act(daemon, "session/command", { sessionId, command: { type: "get_state" } });
      await this.#read(false);
      return undefined;
    });
    this.#isAsking.value = false;
    const { value: inspected } = this.#inspected;
    return outcome.kind === "done" && inspected.kind === "refused" ? inspected : outcome;
  }

  compact(keep: string): Promise<Outcome<Compaction>> {
    const { daemon, sessionId } = this.#options;
    const words = keep.trim();
    return this.#change(async () => {
      const params = { sessionId, ...(words === "" ? {} : { customInstructions: words }) };
      return (await act(daemon, "session/compact", params)).compaction;
    });
  }

  compress(focus: string, wait: boolean): Promise<Outcome<ContextChange>> {
    const { daemon, sessionId } = this.#options;
    const words = focus.trim();
    return this.#change(() =>
      act(daemon, "pruning/compress", { sessionId, ...(words === "" ? {} : { focus: words }), ...waiting(wait) }),
    );
  }

  sweep(last: number | undefined, wait: boolean): Promise<Outcome<ContextChange>> {
    const { daemon, sessionId } = this.#options;
    return this.#change(() =>
      act(daemon, "pruning/sweep", { sessionId, ...(last === undefined ? {} : { last }), ...waiting(wait) }),
    );
  }

  open(block: string): Promise<Outcome<ContextChange>> {
    const { daemon, sessionId } = this.#options;
    return this.#change(() => act(daemon, "pruning/decompress", { sessionId, block }));
  }

  close(block: string): Promise<Outcome<ContextChange>> {
    const { daemon, sessionId } = this.#options;
    return this.#change(() => act(daemon, "pruning/recompress", { sessionId, block }));
  }

  /** The session is no longer shown. */
  end(): void {
    this.#again.close();
    for (const stop of this.#looks) stop();
  }

  /** After a change pi runs, so that it can be asked at no price. */
  async #change<Change>(call: () => Promise<Change>): Promise<Outcome<Change>> {
    const outcome = await outcomeOf(call);
    if (outcome.kind === "done") await this.ask(false);
    return outcome;
  }

  async #read(cached: boolean): Promise<void> {
    const { daemon, sessionId } = this.#options;
    const [inspected, pruned] = await Promise.all([
      lastKnown(() => read(daemon, "optimisation/inspect", { sessionId, cached })),
      lastKnown(() => read(daemon, "pruning/inspect", { sessionId, cached })),
    ]);
    if (this.#again.isClosed) return;
    batch(() => {
      keep(this.#inspected, inspected);
      // Pruning can be turned off, and then its blocks are not in the context.
      this.#pruned.value = pruned;
    });
  }
}

function waiting(wait: boolean): { readonly wait?: true } {
  return wait ? { wait } : {};
}

/** What is known of the context is older then. */
function changesContext({ name, params }: SessionNotification): boolean {
  if (name === "session/event") return params.event.type === "compaction_end" || params.event.type === "rpcd_entry";
  return name === "run/ended" || name === "pruning/changed";
}

async function lastKnown<Value>(call: () => Promise<Value>): Promise<LastKnown<Value>> {
  try {
    return { kind: "known", value: await call() };
  } catch (error) {
    const isUnknown = error instanceof WireError && unknown.has(error.kind);
    return isUnknown ? { kind: "unknown" } : { kind: "refused", words: wordsOf(error) };
  }
}

const unknown: ReadonlySet<string> = new Set(["answer_unknown", "session_asleep"]);

function keep<Value>(into: { value: LastKnown<Value>; peek(): LastKnown<Value> }, next: LastKnown<Value>): void {
  if (next.kind === "known" || into.peek().kind !== "known") into.value = next;
}
