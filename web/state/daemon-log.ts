import { type ReadonlySignal, signal } from "@preact/signals";
import type { DaemonLog, LogLine } from "../../protocol/log-methods.ts";
import type { Daemon } from "./daemon.ts";
import { done, type Outcome, outcomeOf } from "./outcome.ts";
import type { Page } from "./page.ts";
import { read } from "./reading.ts";
import { whileVisible } from "./visible.ts";
import type { PartOptions } from "./workspace.ts";

/** A line of the log, or what is missing at its place. */
export type LogRow =
  | { readonly kind: "line"; readonly line: LogLine }
  /** `lines`: how many; undefined: the daemon began again. */
  | { readonly kind: "gap"; readonly seq: number; readonly lines: number | undefined };

export type LogFilter = "all" | "trouble";

/** The end of the daemon's own log. */
export interface FollowedLog {
  /** Undefined until the first answer. */
  readonly rows: ReadonlySignal<readonly LogRow[] | undefined>;
  /** Why the last call was refused, or nothing. */
  readonly refused: ReadonlySignal<string>;
  readonly filter: ReadonlySignal<LogFilter>;
  readonly hasOlder: ReadonlySignal<boolean>;
  setFilter(filter: LogFilter): void;
  older(): Promise<Outcome>;
  /** Reads what is new again and again while the page is visible, until the returned function is called. */
  follow(): () => void;
}

/** From one answer to the next question. */
const pauseMs = 2_000;
const pageLines = 100;
const followedLines = 500;
/** The oldest of more rows are taken away by new ones; "Older" brings them back. */
const maxRows = 1_000;
/** The same after "Older", so that a person can read what it has brought: the daemon keeps about as many lines. */
const maxRowsRead = 6_000;

export class ReadLog implements FollowedLog {
  readonly #daemon: Daemon;
  readonly #page: Page;
  readonly rows = signal<readonly LogRow[] | undefined>(undefined);
  readonly refused = signal("");
  readonly filter = signal<LogFilter>("all");
  readonly hasOlder = signal(false);
  #cursor: number | undefined;
  #isReading = false;
  #maxRows = maxRows;

  constructor({ daemon, page }: PartOptions) {
    this.#daemon = daemon;
    this.#page = page;
  }

  setFilter(filter: LogFilter): void {
    if (filter === this.filter.value) return;
    this.filter.value = filter;
    this.#cursor = undefined;
    this.rows.value = undefined;
    this.hasOlder.value = false;
    this.#maxRows = maxRows;
    void this.#readNew();
  }

  follow(): () => void {
    return whileVisible(this.#page, () => {
      let isOn = true;
      let timer: ReturnType<typeof setTimeout> | undefined;
      const again = async (): Promise<void> => {
        await this.#readNew();
        if (isOn) timer = setTimeout(() => void again(), pauseMs);
      };
      void again();
      return () => {
        isOn = false;
        clearTimeout(timer);
      };
    });
  }

  async older(): Promise<Outcome> {
    const first = this.rows.value?.[0];
    if (first === undefined) return done;
    const before = first.kind === "line" ? first.line.seq : first.seq;
    const { filter } = this;
    const asked = filter.value;
    const outcome = await outcomeOf(() =>
      read(this.#daemon, "daemon/log", { before, limit: pageLines, ...this.#level }),
    );
    if (outcome.kind === "refused") return outcome;
    const { rows } = this;
    if (asked !== filter.value || rows.value?.[0] !== first) return done;
    this.#maxRows = maxRowsRead;
    rows.value = [...rowsOf(outcome.value), ...rows.value];
    this.hasOlder.value = outcome.value.hasMore;
    return done;
  }

  get #level(): { readonly level?: "warn" } {
    return this.filter.value === "all" ? {} : { level: "warn" };
  }

  async #readNew(): Promise<void> {
    if (this.#isReading) return;
    this.#isReading = true;
    const asked = this.filter.value;
    const after = this.#cursor;
    const outcome = await outcomeOf(() =>
      read(this.#daemon, "daemon/log", {
        ...(after === undefined ? { limit: pageLines } : { after, limit: followedLines }),
        ...this.#level,
      }),
    );
    this.#isReading = false;
    if (asked !== this.filter.value) {
      await this.#readNew();
      return;
    }
    this.refused.value = outcome.kind === "refused" ? outcome.words : "";
    if (outcome.kind === "done") this.#add(outcome.value, after === undefined);
  }

  #add(answer: DaemonLog, isFirst: boolean): void {
    this.#cursor = answer.cursor;
    const added = rowsOf(answer);
    if (isFirst) this.hasOlder.value = answer.hasMore;
    if (!isFirst && added.length === 0) return;
    const all = [...(this.rows.value ?? []), ...added];
    const rows = all.slice(-this.#maxRows);
    if (rows.length < all.length) this.hasOlder.value = true;
    this.rows.value = rows;
  }
}

function rowsOf({ lines, cursor, missed }: DaemonLog): readonly LogRow[] {
  const rows = lines.map((line): LogRow => ({ kind: "line", line }));
  if (missed === undefined) return rows;
  return [{ kind: "gap", seq: lines[0]?.seq ?? cursor, lines: missed.lines }, ...rows];
}
