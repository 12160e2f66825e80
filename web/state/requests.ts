import { batch, computed, type ReadonlySignal, signal } from "@preact/signals";
import type { NotificationParams } from "../../protocol/notifications.ts";
import type { Daemon, FeedListener, SessionNotification } from "./daemon.ts";
import { done, type Outcome, outcomeOf } from "./outcome.ts";
import type { Page } from "./page.ts";
import { isRecord } from "./pi-values.ts";
import { read } from "./reading.ts";
import {
  entryOfLoss,
  type ListedRequest,
  type LiveRequest,
  type ReportedLoss,
  type ShownRequest,
  shownRequests,
  withNewest,
} from "./request-facts.ts";
import { Rereading } from "./rereading.ts";

export type RequestsState =
  | { readonly kind: "loading" }
  | { readonly kind: "ready" }
  | { readonly kind: "refused"; readonly words: string };

/** The requests of a session to the providers of its models. */
export interface Requests {
  readonly state: ReadonlySignal<RequestsState>;
  /** Oldest first; the last ones can be under way. */
  readonly all: ReadonlySignal<readonly ShownRequest[]>;
  /** Whether these are all requests of the session, not only the newest. */
  readonly isWhole: ReadonlySignal<boolean>;
  readonly chosen: ReadonlySignal<ShownRequest | undefined>;
  choose(id: string | undefined): void;
  /** Chooses the next request or the one before; without a chosen one, the newest. */
  step(by: 1 | -1): void;
  reload(): Promise<Outcome>;
}

export interface RequestsOptions {
  readonly daemon: Daemon;
  readonly page: Page;
  readonly sessionId: string;
  /** Something was spent: the costs have changed. */
  readonly onSpent: () => void;
}

type ProviderNotification = Parameters<NonNullable<FeedListener["request"]>>[0];

/** The daemon keeps no more. */
const maxRequests = 1_000;
/** How many of the newest are read after an answer. */
const newestCount = 20;
const maxLosses = 100;

export class SessionRequests implements Requests {
  readonly #options: RequestsOptions;
  readonly #state = signal<RequestsState>({ kind: "loading" });
  readonly #listed = signal<readonly ListedRequest[]>([]);
  readonly #live = signal<readonly LiveRequest[]>([]);
  /** Reported causes, by the entry of the request that lost its cache. */
  readonly #causes = signal<ReadonlyMap<string, string>>(new Map());
  readonly #isWhole = signal(true);
  readonly #chosenId = signal<string | undefined>(undefined);
  readonly all: ReadonlySignal<readonly ShownRequest[]>;
  readonly chosen: ReadonlySignal<ShownRequest | undefined>;
  readonly #stops: readonly (() => void)[];
  /** Losses whose request is not listed yet. */
  #losses: ReportedLoss[] = [];
  readonly #again: Rereading;
  /** The requests of runs that have ended. */
  #ended: ReadonlySet<string> = new Set();

  constructor(options: RequestsOptions) {
    this.#options = options;
    this.all = computed(() => shownRequests(this.#listed.value, this.#live.value, this.#causes.value));
    this.chosen = computed(() => this.all.value.find(({ id }) => id === this.#chosenId.value));
    const { daemon, sessionId, page } = options;
    this.#again = new Rereading({ page, read: () => this.#read(newestCount) });
    const listener: FeedListener = {
      provider: "summary",
      begin: () => {},
      resume: () => void this.reload(),
      gap: ({ onlyDeltas }) => {
        if (onlyDeltas !== true) this.#again.changed();
      },
      receive: (notification) => this.#receive(notification),
      request: (notification) => this.#request(notification),
      end: () => {},
    };
    this.#stops = [daemon.session(sessionId).listen(listener), this.#again.watch()];
    void this.reload();
  }

  get state(): ReadonlySignal<RequestsState> {
    return this.#state;
  }

  get isWhole(): ReadonlySignal<boolean> {
    return this.#isWhole;
  }

  choose(id: string | undefined): void {
    this.#chosenId.value = id;
  }

  step(by: 1 | -1): void {
    const all = this.all.value;
    const at = all.findIndex(({ id }) => id === this.#chosenId.value);
    const next = at < 0 ? all.length - 1 : Math.min(Math.max(at + by, 0), all.length - 1);
    this.#chosenId.value = all[next]?.id;
  }

  async reload(): Promise<Outcome> {
    const outcome = await outcomeOf(() => this.#read(maxRequests));
    if (this.#again.isClosed) return done;
    if (outcome.kind === "done") this.#state.value = { kind: "ready" };
    // What was read before stays.
    else if (this.#state.peek().kind !== "ready") this.#state.value = outcome;
    return outcome.kind === "done" ? done : outcome;
  }

  close(): void {
    this.#again.close();
    for (const stop of this.#stops) stop();
  }

  async #read(limit: number): Promise<undefined> {
    const { daemon, sessionId } = this.#options;
    const ended = this.#ended;
    const { requests, isWhole } = await read(daemon, "request/list", { sessionId, limit });
    if (this.#again.isClosed) return;
    const listed = limit === maxRequests ? requests : withNewest(this.#listed.peek(), requests, isWhole);
    if (listed === undefined) return await this.#read(maxRequests);
    batch(() => {
      this.#listed.value = listed.slice(-maxRequests);
      if (limit === maxRequests || isWhole) this.#isWhole.value = isWhole;
      else if (listed.length > maxRequests) this.#isWhole.value = false;
      this.#findLosses();
      this.#followChosen();
      this.#endWithoutEntry(ended);
    });
    return;
  }

  /** A request that was chosen while it was under way gets another id when it has an entry. */
  #followChosen(): void {
    const chosen = this.#chosenId.peek();
    if (chosen === undefined) return;
    const entry = this.all.value.find(({ live, entryId }) => entryId !== undefined && live?.requestId === chosen);
    if (entry !== undefined) this.#chosenId.value = entry.id;
  }

  /** A request gets no entry any more after its run. `ended`: those whose run had ended before the list was read. */
  #endWithoutEntry(ended: ReadonlySet<string>): void {
    if (ended.size === 0) return;
    if (this.#ended === ended) this.#ended = new Set();
    const open = this.all.value.flatMap(({ id, entryId }) => (entryId === undefined && ended.has(id) ? [id] : []));
    if (open.length > 0) this.#live.value = this.#live.peek().filter(({ requestId }) => !open.includes(requestId));
  }

  #receive(notification: SessionNotification): void {
    const { name, params } = notification;
    if (name === "session/event") {
      const { type, message } = params.event;
      const isAnswer = type === "message_end" && isRecord(message) && message["role"] === "assistant";
      if (!isAnswer && type !== "compaction_end" && type !== "rpcd_entry") return;
    } else if (name === "cache/broken") {
      const { cause, model, readTokens, missedTokens } = params;
      this.#losses = [...this.#losses, { cause, model, readTokens, missedTokens }].slice(-maxLosses);
    } else if (name === "run/ended") {
      this.#ended = new Set(this.#live.peek().map(({ requestId }) => requestId));
    } else if (name !== "delivery/updated" || params.delivery.state !== "answered") {
      if (name.startsWith("cost/")) this.#options.onSpent();
      return;
    }
    this.#again.changed();
    this.#options.onSpent();
  }

  #findLosses(): void {
    const listed = this.#listed.peek();
    const found = this.#losses.flatMap((loss) => {
      const entryId = entryOfLoss(listed.slice(-newestCount), loss);
      return entryId === undefined ? [] : [[loss, entryId] as const];
    });
    if (found.length === 0) return;
    const gone = new Set(found.map(([loss]) => loss));
    this.#losses = this.#losses.filter((loss) => !gone.has(loss));
    this.#causes.value = new Map([
      ...this.#causes.peek(),
      ...found.map(([{ cause }, entryId]) => [entryId, cause] as const),
    ]);
  }

  #request({ name, params }: ProviderNotification): void {
    if (name === "provider/requestPrepared") {
      this.#live.value = [...this.#live.peek(), prepared(params)].slice(-maxRequests);
      return;
    }
    const { requestId, at, status } = params;
    const end =
      name === "provider/requestDelivered"
        ? ({ kind: "delivered", evidence: params.evidence, latencyMs: params.latencyMs, status } as const)
        : ({
            kind: "failed",
            reason: params.reason,
            at,
            status,
            error: params.error,
            willRetry: params.willRetry,
          } as const);
    this.#live.value = this.#live.peek().map((request) =>
      request.requestId === requestId
        ? {
            ...request,
            end,
            // It was sent again in another form.
            ...("payloadBytes" in params && { payloadBytes: params.payloadBytes, payloadSha256: params.payloadSha256 }),
          }
        : request,
    );
  }
}

function prepared(params: NotificationParams<"provider/requestPrepared">): LiveRequest {
  const { requestId, at, attempt, model, messageCount, composition, payloadBytes, payloadSha256, deliveryIds } = params;
  return {
    requestId,
    at,
    attempt,
    model: model === undefined ? undefined : `${model.provider}/${model.id}`,
    messageCount,
    composition,
    payloadBytes,
    payloadSha256,
    deliveryIds,
    end: undefined,
  };
}
