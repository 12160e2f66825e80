import { batch, type ReadonlySignal, type Signal, signal } from "@preact/signals";
import type { Item, Row, RowGroup } from "./items.ts";

/** A row whose item can be replaced. */
export interface Cell extends Row {
  readonly item: Signal<Item>;
}

export function cell(id: string, item: Item): Cell {
  return { id, item: signal(item) };
}

/** So many rows are built in a frame (`views/widgets/build-queue.ts`): more make frames long, fewer need more elements. */
const rowsInGroup = 10;

/** Rows in groups. A group stays the same object while rows are added before the first or after the last group. */
export class Rows {
  readonly #groups = signal<readonly RowGroup[]>([]);
  /** The rows of the last group, which grows. */
  #last: { readonly rows: Signal<readonly Cell[]> } | undefined;
  #lastNumber = 0;
  readonly #shown = new Set<Row>();
  readonly #onAdded: (count: number) => void;

  /** `onAdded` is called when rows came that are not in the place of others. */
  constructor(onAdded: (count: number) => void = () => {}) {
    this.#onAdded = onAdded;
  }

  get groups(): ReadonlySignal<readonly RowGroup[]> {
    return this.#groups;
  }

  /** All rows, oldest first. */
  get all(): readonly Cell[] {
    return this.#groups.value.flatMap(({ rows }) => rows.value as readonly Cell[]);
  }

  get count(): number {
    return this.#shown.size;
  }

  has(row: Row): boolean {
    return this.#shown.has(row);
  }

  get last(): Cell | undefined {
    return this.#last?.rows.value.at(-1);
  }

  append(added: readonly Cell[]): void {
    if (added.length === 0) return;
    for (const row of added) this.#shown.add(row);
    batch(() => {
      const room = this.#last === undefined ? 0 : rowsInGroup - this.#last.rows.value.length;
      if (this.#last !== undefined && room > 0)
        this.#last.rows.value = [...this.#last.rows.value, ...added.slice(0, room)];
      const groups: RowGroup[] = [];
      for (let at = Math.max(0, room); at < added.length; at += rowsInGroup) {
        const group = this.#group(added.slice(at, at + rowsInGroup));
        this.#last = group;
        groups.push(group);
      }
      if (groups.length > 0) this.#groups.value = [...this.#groups.value, ...groups];
      this.#onAdded(added.length);
    });
  }

  prepend(added: readonly Cell[]): void {
    for (const row of added) this.#shown.add(row);
    const groups: RowGroup[] = [];
    for (let end = added.length; end > 0; end -= rowsInGroup) {
      groups.unshift(this.#group(added.slice(Math.max(0, end - rowsInGroup), end)));
    }
    if (groups.length > 0) this.#groups.value = [...groups, ...this.#groups.value];
  }

  /** Puts rows in the place of the first of others, which go. Without others they come at the end. */
  replace(former: readonly Cell[], rows: readonly Cell[]): void {
    const gone = new Set<Row>(former.filter((row) => this.#shown.delete(row)));
    const [first] = gone;
    if (first === undefined) {
      this.append(rows);
      return;
    }
    for (const row of rows) this.#shown.add(row);
    batch(() => {
      for (const group of this.#groups.value) {
        const known = group.rows as Signal<readonly Row[]>;
        if (!known.value.some((row) => gone.has(row))) continue;
        known.value = known.value.flatMap((row) => (row === first ? rows : gone.has(row) ? [] : [row]));
      }
      this.#onAdded(rows.length - gone.size);
    });
  }

  #group(rows: readonly Cell[]): { readonly id: string; readonly rows: Signal<readonly Cell[]> } {
    this.#lastNumber += 1;
    return { id: `group-${this.#lastNumber}`, rows: signal(rows) };
  }
}
