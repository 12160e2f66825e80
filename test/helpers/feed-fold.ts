import type { DaemonEvent, FeedGap } from "../../protocol/feed.ts";

/** The daemon's lists, limited to objects that the feed refers to. */
export interface Listed {
  readonly sessions: readonly string[];
  readonly deliveries: readonly { readonly deliveryId: string; readonly state: string; readonly settledAt?: number }[];
  readonly dialogs: readonly { readonly dialogId: string; readonly sessionId: string }[];
}

/** The state of a client that only folds the feed. */
export class FeedFold {
  position: number;
  /** Violations by the daemon: an event twice, out of order, or missing without a gap. */
  readonly mistakes: string[] = [];
  /** Whether lists must be read again. */
  isBehind = false;
  readonly runs = new Map<string, string>();
  readonly #sessions = new Set<string>();
  readonly #deliveries = new Map<string, string>();
  readonly #dialogs = new Map<string, string>();

  constructor(position: number) {
    this.position = position;
  }

  event({ seq, after, kind, state, sessionId, runId, deliveryId, dialogId }: DaemonEvent): void {
    if (after !== this.position || seq !== after + 1) this.mistakes.push(`${seq} after ${after} at ${this.position}`);
    this.position = seq;
    if (kind === "session" && state !== "closed") this.#sessions.add(sessionId);
    if (kind === "session" && state === "closed") {
      this.#sessions.delete(sessionId);
      for (const [id, of] of this.#dialogs) if (of === sessionId) this.#dialogs.delete(id);
    }
    if (runId !== undefined && this.runs.has(runId)) this.mistakes.push(`run ${runId} has ended twice`);
    if (runId !== undefined) this.runs.set(runId, state);
    if (deliveryId !== undefined) this.#deliveries.set(deliveryId, state);
    if (dialogId !== undefined && state === "open") this.#dialogs.set(dialogId, sessionId);
    if (dialogId !== undefined && state === "resolved") this.#dialogs.delete(dialogId);
  }

  gap({ from, to, reason }: Pick<FeedGap, "from" | "to"> & { readonly reason: string }): void {
    const isReset = reason === "log_reset" && from === 0 && to === this.position;
    if (!isReset && (reason !== "not_retained" || from !== this.position + 1)) {
      this.mistakes.push(`gap ${reason} from ${from} to ${to} at ${this.position}`);
    }
    this.position = isReset ? 0 : to;
    this.isBehind = true;
  }

  /** Starts from lists. */
  begin({ sessions, deliveries, dialogs }: Listed): void {
    for (const known of [this.#sessions, this.#deliveries, this.#dialogs]) known.clear();
    for (const id of sessions) this.#sessions.add(id);
    for (const { deliveryId, state } of deliveries.filter(isSettled)) this.#deliveries.set(deliveryId, state);
    for (const { dialogId, sessionId } of dialogs) this.#dialogs.set(dialogId, sessionId);
    this.isBehind = false;
  }

  get state(): object {
    return {
      sessions: [...this.#sessions].sort(),
      deliveries: Object.fromEntries([...this.#deliveries].sort()),
      dialogs: [...this.#dialogs.keys()].sort(),
    };
  }
}

/** The expected result of folding the whole feed. */
export function stateOf(listed: Listed): object {
  const fold = new FeedFold(0);
  fold.begin(listed);
  return fold.state;
}

function isSettled({ settledAt }: Listed["deliveries"][number]): boolean {
  return settledAt !== undefined;
}
