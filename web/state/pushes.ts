import { batch, computed, type ReadonlySignal, type Signal, signal } from "@preact/signals";
import type { Delivery, DeliveryState } from "../../client/browser.ts";
import type { Content } from "../../protocol/content.ts";
import type { Known } from "./choices.ts";
import type { Daemon } from "./daemon.ts";
import type { LongText } from "./items.ts";
import { wholeText } from "./long-texts.ts";
import { done, type Outcome, outcomeOf } from "./outcome.ts";
import { act, read } from "./reading.ts";
import type { ListState } from "./sessions.ts";
import { whileVisible } from "./visible.ts";
import type { PartOptions } from "./workspace.ts";

/** The groups of the list, in its order: the first three are open. `unanswered`: the model has it, and no complete answer came. */
export const pushGroupNames = [
  "parked",
  "waiting",
  "underWay",
  "undelivered",
  "unanswered",
  "answered",
  "withdrawn",
] as const;
export type PushGroupName = (typeof pushGroupNames)[number];

/** What the list keeps of a push. */
export interface PushRow {
  readonly deliveryId: string;
  readonly sessionId: string;
  readonly group: PushGroupName;
  readonly state: DeliveryState;
  /** Foreign text. */
  readonly customType: string;
  /** Its first words: foreign text. Empty: it has only images. Undefined: not known. */
  readonly preview: string | undefined;
  /** Unix time in milliseconds. */
  readonly createdAt: number;
  readonly updatedAt: number;
}

export interface PushGroup {
  readonly name: PushGroupName;
  /** Newest first. */
  readonly rows: readonly PushRow[];
}

/** What was pushed, on request. */
export interface PushContent {
  readonly text: LongText;
  /** Images that it has, in words: `image/png, 12 KiB`. */
  readonly images: readonly { readonly mimeType: string; readonly bytes: number }[];
}

/** The push whose timeline is shown. */
export interface OpenPush {
  readonly deliveryId: string;
  /** The client id of this page. */
  readonly ownId: string;
  readonly delivery: ReadonlySignal<Known<Delivery>>;
  readonly content: ReadonlySignal<Known<PushContent>>;
  /** Reads what was pushed. */
  showContent(): Promise<void>;
  /** Withdraws it; refused with words if that is too late. */
  cancel(): Promise<Outcome>;
  /** Starts a run that carries it. */
  resend(): Promise<Outcome>;
}

/** The pushes of all sessions, or of one. */
export interface Pushes {
  readonly state: ReadonlySignal<ListState>;
  /** Groups with at least one row that fits the filter. */
  readonly groups: ReadonlySignal<readonly PushGroup[]>;
  /** How many are here without the filter. */
  readonly count: ReadonlySignal<number>;
  /** Words that type, beginning or session of a row must contain. */
  readonly filter: Signal<string>;
  /** Only the pushes of this session are listed. */
  readonly sessionId: ReadonlySignal<string | undefined>;
  /** Whether older ones can be loaded. */
  readonly hasMore: ReadonlySignal<boolean>;
  /** Whether older ones are left out, because the page keeps no more. */
  readonly isFull: ReadonlySignal<boolean>;
  readonly opened: ReadonlySignal<OpenPush | undefined>;
  open(deliveryId: string | undefined): void;
  /** Lists the pushes of one session, or of all. */
  only(sessionId: string | undefined): void;
  /** Loads older ones. */
  more(): Promise<Outcome>;
  /** Follows the pushes while the page is visible, until the returned function is called. */
  watch(): () => void;
}

const openStates: readonly DeliveryState[] = ["accepted", "held", "inserted", "prepared", "parked"];
const otherStates: readonly DeliveryState[] = [
  "delivered",
  "answered",
  "dropped",
  "cancelled",
  "expired",
  "failed",
  "unknown",
];
const pageSize = 200;
/** So many rows are kept, of at most about 1 KiB each. */
const maxRows = 5_000;
/** So many rows go at once when there are too many. */
const surplus = 200;

const groups: Readonly<Record<DeliveryState, PushGroupName>> = {
  accepted: "waiting",
  held: "waiting",
  inserted: "underWay",
  prepared: "underWay",
  delivered: "underWay",
  parked: "parked",
  answered: "answered",
  dropped: "undelivered",
  failed: "undelivered",
  unknown: "undelivered",
  cancelled: "withdrawn",
  expired: "withdrawn",
};

/** The group of a delivery. One that was delivered and has a reason gets no answer any more. */
export function pushGroupOf({ state, reason }: Pick<Delivery, "state" | "reason">): PushGroupName {
  if (state === "delivered" && reason !== undefined) return "unanswered";
  // States of later daemons count as open.
  return groups[state] ?? "underWay";
}

export function isOver(group: PushGroupName): boolean {
  return pushGroupNames.indexOf(group) > pushGroupNames.indexOf("underWay");
}

type Rows = ReadonlyMap<string, PushRow>;

export class AllPushes implements Pushes {
  readonly #options: PartOptions;
  readonly #state = signal<ListState>({ kind: "loading" });
  readonly #rows = signal<Rows>(new Map());
  readonly #next = signal<string | undefined>(undefined);
  readonly #sessionId = signal<string | undefined>(undefined);
  readonly #opened = signal<ShownPush | undefined>(undefined);
  readonly filter = signal("");
  readonly groups: ReadonlySignal<readonly PushGroup[]>;
  readonly count: ReadonlySignal<number>;
  readonly hasMore: ReadonlySignal<boolean>;
  readonly isFull = signal(false);
  /** Changes that are not shown yet. */
  readonly #changed = new Map<string, PushRow>();
  #unpaint: (() => void) | undefined;
  /** What came while the list is being read. */
  #changedMeanwhile: Map<string, PushRow> | undefined;
  #isLoadingMore = false;

  constructor(options: PartOptions) {
    this.#options = options;
    const sorted = computed(() => [...this.#rows.value.values()].sort((a, b) => b.createdAt - a.createdAt));
    this.groups = computed(() => grouped(sorted.value, this.filter.value, options.titleOf));
    this.count = computed(() => this.#rows.value.size);
    this.hasMore = computed(() => this.#next.value !== undefined && !this.isFull.value);
  }

  get state(): ReadonlySignal<ListState> {
    return this.#state;
  }

  get sessionId(): ReadonlySignal<string | undefined> {
    return this.#sessionId;
  }

  get opened(): ReadonlySignal<OpenPush | undefined> {
    return this.#opened;
  }

  watch(): () => void {
    return whileVisible(this.#options.page, () => this.#follow());
  }

  open(deliveryId: string | undefined): void {
    if (this.#opened.peek()?.deliveryId === deliveryId) return;
    const { daemon } = this.#options;
    const push =
      deliveryId === undefined ? undefined : new ShownPush(daemon, deliveryId, (delivery) => this.#heard(delivery));
    this.#opened.value = push;
    void push?.refresh();
  }

  only(sessionId: string | undefined): void {
    if (this.#sessionId.peek() === sessionId) return;
    batch(() => {
      this.#sessionId.value = sessionId;
      this.#rows.value = new Map();
      this.#next.value = undefined;
      this.#state.value = { kind: "loading" };
    });
    this.#changed.clear();
    void this.#refresh();
  }

  async more(): Promise<Outcome> {
    const after = this.#next.peek();
    if (after === undefined || this.#isLoadingMore) return done;
    const sessionId = this.#sessionId.peek();
    this.#isLoadingMore = true;
    const outcome = await outcomeOf(() => this.#page(otherStates, after));
    this.#isLoadingMore = false;
    if (outcome.kind === "refused") return outcome;
    if (this.#sessionId.peek() !== sessionId || this.#next.peek() !== after) return done;
    batch(() => {
      this.#add(outcome.value.deliveries.map(rowOf));
      this.#next.value = outcome.value.next;
    });
    return done;
  }

  /** Follows the daemon's deliveries: what was before is read again. */
  #follow(): () => void {
    const { daemon } = this.#options;
    let isOn = true;
    let unsubscribe = (): void => {};
    const unwatch = daemon.onConnection(({ kind }) => {
      if (kind === "connected") this.#readAgain();
    });
    const subscribed = outcomeOf(() => daemon.onDeliveryUpdated(({ delivery }) => this.#heard(delivery)));
    void subscribed.then((outcome) => {
      if (outcome.kind === "refused") {
        if (isOn && this.#state.peek().kind === "loading") this.#state.value = outcome;
        return;
      }
      unsubscribe = outcome.value;
      if (isOn) this.#readAgain();
      else unsubscribe();
    });
    return () => {
      isOn = false;
      unwatch();
      unsubscribe();
      this.#unpaint?.();
      this.#unpaint = undefined;
      this.#changed.clear();
      // An answer that is still to come would miss what changes from now on.
      this.#changedMeanwhile = undefined;
    };
  }

  #readAgain(): void {
    void this.#refresh();
    void this.#opened.peek()?.refresh();
  }

  #heard(delivery: Delivery): void {
    const opened = this.#opened.peek();
    if (opened?.deliveryId === delivery.deliveryId) opened.changed(delivery);
    const only = this.#sessionId.peek();
    if (only !== undefined && delivery.sessionId !== only) return;
    const row = rowOf(delivery);
    this.#changedMeanwhile?.set(row.deliveryId, row);
    this.#changed.set(row.deliveryId, row);
    this.#unpaint ??= this.#options.page.frame(() => {
      this.#unpaint = undefined;
      const rows = [...this.#changed.values()];
      this.#changed.clear();
      this.#add(rows);
    });
  }

  #add(added: readonly PushRow[]): void {
    const rows = new Map(this.#rows.peek());
    for (const row of added) {
      const known = rows.get(row.deliveryId);
      if (known === undefined || known.updatedAt <= row.updatedAt) rows.set(row.deliveryId, row);
    }
    this.#set(rows);
  }

  /** Keeps the newest, and those that are open before all. */
  #set(rows: Map<string, PushRow>): void {
    if (rows.size > maxRows) {
      const byAge = [...rows.values()].sort(
        (a, b) => Number(isOver(b.group)) - Number(isOver(a.group)) || a.createdAt - b.createdAt,
      );
      for (const { deliveryId } of byAge.slice(0, rows.size - maxRows + surplus)) rows.delete(deliveryId);
      this.isFull.value = true;
    }
    this.#rows.value = rows;
  }

  async #refresh(): Promise<void> {
    const changed = new Map<string, PushRow>();
    this.#changedMeanwhile = changed;
    const listed = await outcomeOf(() => this.#first());
    if (this.#changedMeanwhile !== changed) return;
    this.#changedMeanwhile = undefined;
    if (listed.kind === "refused") {
      if (this.#state.peek().kind !== "loaded") this.#state.value = listed;
      return;
    }
    const { rows, next } = listed.value;
    batch(() => {
      this.isFull.value = false;
      this.#set(new Map(rows.map((row) => [row.deliveryId, row])));
      this.#add([...changed.values()]);
      this.#next.value = next;
      this.#state.value = { kind: "loaded" };
    });
  }

  /** The open ones, as many as are kept, and the newest of the others. */
  async #first(): Promise<{ readonly rows: readonly PushRow[]; readonly next: string | undefined }> {
    const rows: PushRow[] = [];
    for (let after: string | undefined; ; ) {
      const page = await this.#page(openStates, after);
      rows.push(...page.deliveries.map(rowOf));
      after = page.next;
      if (after === undefined || rows.length >= maxRows) break;
    }
    const others = await this.#page(otherStates, undefined);
    rows.push(...others.deliveries.map(rowOf));
    return { rows, next: others.next };
  }

  #page(
    states: readonly DeliveryState[],
    after: string | undefined,
  ): Promise<{ readonly deliveries: readonly Delivery[]; readonly next?: string | undefined }> {
    const sessionId = this.#sessionId.peek();
    return read(this.#options.daemon, "delivery/list", {
      states: [...states],
      limit: pageSize,
      ...(after === undefined ? {} : { after }),
      ...(sessionId === undefined ? {} : { sessionId }),
    });
  }
}

class ShownPush implements OpenPush {
  readonly #daemon: Daemon;
  readonly #heard: (delivery: Delivery) => void;
  readonly deliveryId: string;
  readonly ownId: string;
  readonly #delivery = signal<Known<Delivery>>({ kind: "asking" });
  readonly #content = signal<Known<PushContent>>({ kind: "unknown" });

  /** `heard` gets each state that an action returns. */
  constructor(daemon: Daemon, deliveryId: string, heard: (delivery: Delivery) => void) {
    this.#daemon = daemon;
    this.deliveryId = deliveryId;
    this.ownId = daemon.id;
    this.#heard = heard;
  }

  get delivery(): ReadonlySignal<Known<Delivery>> {
    return this.#delivery;
  }

  get content(): ReadonlySignal<Known<PushContent>> {
    return this.#content;
  }

  changed(delivery: Delivery): void {
    const known = this.#delivery.peek();
    if (known.kind === "known" && known.value.updatedAt > delivery.updatedAt) return;
    this.#delivery.value = { kind: "known", value: delivery };
  }

  async refresh(): Promise<void> {
    const outcome = await outcomeOf(() => read(this.#daemon, "delivery/get", { deliveryId: this.deliveryId }));
    if (outcome.kind === "done") this.changed(outcome.value);
    else if (this.#delivery.peek().kind !== "known") this.#delivery.value = outcome;
  }

  async showContent(): Promise<void> {
    this.#content.value = { kind: "asking" };
    const { deliveryId } = this;
    const outcome = await outcomeOf(() => read(this.#daemon, "delivery/get", { deliveryId, content: true }));
    this.#content.value =
      outcome.kind === "refused" ? outcome : { kind: "known", value: contentOf(outcome.value.content ?? "") };
  }

  async cancel(): Promise<Outcome> {
    const { deliveryId } = this;
    const outcome = await outcomeOf(() => act(this.#daemon, "delivery/cancel", { deliveryId }));
    if (outcome.kind === "refused") return outcome;
    const { cancelled, delivery } = outcome.value;
    this.#heard(delivery);
    return cancelled ? done : { kind: "refused", words: "It was too late to withdraw it." };
  }

  async resend(): Promise<Outcome> {
    const { deliveryId } = this;
    const outcome = await outcomeOf(() => act(this.#daemon, "delivery/resend", { deliveryId }));
    if (outcome.kind === "refused") return outcome;
    this.#heard(outcome.value);
    return done;
  }
}

function rowOf(delivery: Delivery): PushRow {
  const { deliveryId, sessionId, state, customType, preview, createdAt, updatedAt } = delivery;
  const group = pushGroupOf(delivery);
  return { deliveryId, sessionId, group, state, customType, preview, createdAt, updatedAt };
}

function contentOf(content: Content): PushContent {
  if (typeof content === "string") return { text: wholeText(content), images: [] };
  const texts = content.flatMap((block) => (block.type === "text" ? [block.text] : []));
  const images = content.flatMap((block) =>
    block.type === "image" ? [{ mimeType: block.mimeType, bytes: Math.floor((block.data.length * 3) / 4) }] : [],
  );
  return { text: wholeText(texts.join("\n\n")), images };
}

function grouped(
  rows: readonly PushRow[],
  filter: string,
  titleOf: (sessionId: string) => string,
): readonly PushGroup[] {
  const words = filter
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "");
  const fits = ({ customType, preview = "", sessionId, state }: PushRow): boolean => {
    const text = [customType, preview, state, titleOf(sessionId)].join(" ").toLowerCase();
    return words.every((word) => text.includes(word));
  };
  const fitting = words.length === 0 ? rows : rows.filter(fits);
  const byName = new Map<PushGroupName, PushRow[]>(pushGroupNames.map((name) => [name, []]));
  for (const row of fitting) byName.get(row.group)?.push(row);
  return pushGroupNames.flatMap((name) => {
    const own = byName.get(name) ?? [];
    return own.length === 0 ? [] : [{ name, rows: own }];
  });
}
