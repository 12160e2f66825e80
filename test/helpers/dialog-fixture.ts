import { pino } from "pino";
import type { Dialog, DialogAnswer, DialogPolicy, DialogResolution } from "../../protocol/dialog.ts";
import { WireError } from "../../protocol/errors.ts";
import { limits } from "../../server/configuration/limits.ts";
import { type DialogLimits, DialogRegistry } from "../../server/dialogs/dialog-registry.ts";
import { type DialogAnnouncement, Dialogs, type Reader } from "../../server/dialogs/dialogs.ts";
import type { ChildState } from "../../server/pi/child-state.ts";
import type { PiCommand, PiEvent } from "../../server/pi/records.ts";
import { type FakeClock, fakeClock } from "./fake-clock.ts";
import type { Unchecked } from "./unchecked.ts";

export interface Said {
  readonly method: "dialog/opened" | "dialog/updated" | "dialog/resolved";
  readonly params: Unchecked;
}

/** The dialogs of one session, with fake surroundings. */
export class DialogFixture {
  readonly clock: FakeClock = fakeClock();
  readonly said: Said[] = [];
  readonly posted: PiCommand[] = [];
  /** The content of the store. */
  readonly stored = new Map<string, Dialog>();
  pendingChanges = 0;
  readonly runWaits: boolean[] = [];
  /** The child's state. */
  childState: ChildState = { kind: "ready" };
  responders = 0;
  /** The client whose prompt leads to the questions. */
  owner: string | undefined;
  /** Clients that can answer. */
  clients: ReadonlySet<string> = new Set();
  /** The dialogs that were reported to extensions, and what delays pi's answer until then. */
  readonly announced: DialogAnnouncement[] = [];
  announcing: Promise<void> | undefined;
  isReady = true;
  runId: string | undefined;
  generation = 1;
  registry!: DialogRegistry;
  dialogs!: Dialogs;
  readonly #policy: DialogPolicy;
  readonly #limits: Partial<DialogLimits>;
  #asked = 0;

  constructor(policy: DialogPolicy = { kind: "wait" }, changed: Partial<DialogLimits> = {}) {
    this.#policy = policy;
    this.#limits = changed;
    this.#start();
  }

  /** The open dialogs. */
  get open(): readonly Dialog[] {
    return this.registry.page({ limit: 500 }).dialogs;
  }

  /** The only open dialog. */
  get only(): Dialog {
    const [dialog, ...others] = this.open;
    if (dialog === undefined || others.length > 0) throw new Error(`${this.open.length} dialogs are open`);
    return dialog;
  }

  /** How each dialog ended, in order: `<how> by <by>`. */
  get endings(): string[] {
    return this.said.flatMap(({ method, params }) =>
      method === "dialog/resolved" ? [`${params.how} by ${params.by}`] : [],
    );
  }

  get child(): Reader {
    return {
      state: this.childState,
      post: (record) => void (this.childState.kind === "ready" && this.posted.push(record)),
    };
  }

  /** The child dies. */
  die(): void {
    const exit = { at: 1, code: 1, signal: null, expected: false, stderrTail: "" };
    this.childState = { kind: "exited", exit };
    this.isReady = false;
    this.dialogs.childEnded(this.child);
  }

  /** Another one is there. */
  revive(): void {
    this.generation += 1;
    this.childState = { kind: "ready" };
    this.dialogs.childStarting();
    this.isReady = true;
    this.dialogs.childReady();
  }

  /** pi's id of the next question. */
  get nextId(): string {
    return `q${this.#asked + 1}`;
  }

  /** An extension asks. Returns pi's id of the question. */
  ask(fields: Readonly<Record<string, unknown>> = {}): string {
    this.#asked += 1;
    const id = `q${this.#asked}`;
    const question = { method: "confirm", title: "Sure?", message: "Really?", ...fields };
    this.dialogs.look({ type: "extension_ui_request", id, ...question } as PiEvent);
    return id;
  }

  respond(dialogId: string, answer: DialogAnswer, clientId = "c1"): DialogResolution {
    return this.registry.respond(dialogId, answer, { clientId });
  }

  /** The name of the error that an answer gets. */
  refusal(dialogId: string, answer: DialogAnswer, client?: string): string {
    try {
      this.respond(dialogId, answer, client);
      return "none";
    } catch (error) {
      return error instanceof WireError ? error.kind : String(error);
    }
  }

  attend(responders: number): void {
    this.responders = responders;
    this.dialogs.respondersChanged();
  }

  /** Timers of killed daemons. They do nothing. */
  killedTimers = 0;

  /** The daemon is killed, and another takes over its store. */
  kill(): void {
    this.responders = 0;
    this.clients = new Set();
    this.killedTimers = this.clock.waiting;
    this.runId = undefined;
    // A dead daemon's later actions do not happen.
    this.dialogs = undefined as never;
    this.#start();
    this.dialogs.recover();
  }

  #start(): void {
    const registry = new DialogRegistry(
      {
        put: async (dialog) => void this.stored.set(dialog.dialogId, structuredClone(dialog)),
        get: (dialogId) => this.stored.get(dialogId),
        open: () => [...this.stored.values()].filter(({ state }) => state === "open"),
        deleteOf: async () => this.stored.clear(),
        limit: async () => {},
      },
      { ...limits.dialogs, ...this.#limits },
    );
    this.registry = registry;
    const dialogs: Dialogs = new Dialogs({
      sessionId: "s1",
      registry,
      policy: this.#policy,
      clock: { now: this.clock.now, after: (ms, run) => this.clock.after(ms, () => this.dialogs === dialogs && run()) },
      say: (method, params) => void this.said.push({ method, params: structuredClone(params) }),
      responders: (without) => this.responders - (without?.size ?? 0),
      canAnswer: () => this.responders > 0,
      owner: () => (this.owner === undefined ? undefined : { clientId: this.owner }),
      isResponder: (clientId) => this.clients.has(clientId),
      announce: (_child, dialog) => {
        this.announced.push(dialog);
        return this.announcing;
      },
      toldId: () => undefined,
      runId: () => this.runId,
      generation: () => this.generation,
      child: () => (this.isReady ? this.child : undefined),
      onPending: () => {
        this.pendingChanges += 1;
      },
      onRunWaits: (isWaiting) => void this.runWaits.push(isWaiting),
      log: pino({ level: "silent" }),
    });
    this.dialogs = dialogs;
  }
}
