import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ChildKeeping, type ChildKeepingOptions } from "../../../server/children/child-keeping.ts";
import type { Placing } from "../../../server/store/children.ts";

const mebibyte = 1024 * 1024;

/** A child, its keeper and its row, whose store answers when the test says so. */
class Fixture {
  readonly child = { id: "c", handled: 0, isHandling: false, state: { kind: "ready" }, decided: [] as string[] };
  readonly acks: number[] = [];
  readonly forgotten: string[] = [];
  readonly keeping: ChildKeeping;
  #placeOf: () => Placing | undefined = () => undefined;

  constructor() {
    const keeper = {
      answer: { everSent: 0 },
      ack: (offset: number) => this.acks.push(offset),
      forget: (promptId: string) => this.forgotten.push(promptId),
    };
    const child = { ...this.child, takeDecided: () => this.child.decided.splice(0) };
    Object.defineProperty(child, "handled", { get: () => this.child.handled });
    this.keeping = new ChildKeeping({
      ...{ child, keeper, facts: {}, journal: { cursor: 0, isReplaying: false, unsaid: [], hasSaid: () => false } },
      store: {
        put: (_id: string, _facts: object, _place: object, placeOf: () => Placing | undefined) => {
          this.#placeOf = placeOf;
        },
        storeSoon: () => {},
        delete: async () => {},
      },
      owed: () => [],
      answers: () => [],
      onReplayed: () => {},
    } as unknown as ChildKeepingOptions);
  }

  wrote(bytes: number): void {
    this.child.handled += bytes;
    this.keeping.handled();
  }

  /** A transaction with the child's place ends. */
  stored(isStored: boolean): void {
    this.#placeOf()?.done(isStored);
  }
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("the keeper forgets a prompt once its outcome is stored, also if the store failed before", () => {
  const on = new Fixture();
  on.child.decided.push("p1");
  on.stored(false);
  expect(on.forgotten).toEqual([]);
  on.stored(true);
  expect(on.forgotten).toEqual(["p1"]);
  on.child.decided.push("p2");
  on.stored(true);
  expect(on.forgotten).toEqual(["p1", "p2"]);
});

test("a store that does not answer does not stop pi: its output is acknowledged without it", () => {
  const on = new Fixture();
  on.wrote(3 * mebibyte);
  vi.advanceTimersByTime(60_000);
  expect(on.acks).toEqual([]);
  on.wrote(3 * mebibyte);
  vi.advanceTimersByTime(4_000);
  expect(on.acks).toEqual([]);
  vi.advanceTimersByTime(2_000);
  expect(on.acks.at(-1)).toBeGreaterThanOrEqual(2 * mebibyte);
});
