import { type ReadonlySignal, signal } from "@preact/signals";
import type { Result } from "../../client/browser.ts";
import type { Daemon } from "./daemon.ts";
import { done, type Outcome, outcomeOf } from "./outcome.ts";
import type { Page } from "./page.ts";
import { read } from "./reading.ts";
import { Rereading } from "./rereading.ts";

export type CostReport = Result<"cost/report">;
export type CacheReport = Result<"cache/report">;

/** What was asked, or why it is not known. What was known once stays. */
export type Asked<Value> =
  | { readonly kind: "asking" }
  | { readonly kind: "known"; readonly value: Value }
  | { readonly kind: "refused"; readonly words: string };

/** What a session has cost. */
export interface Costs {
  readonly report: ReadonlySignal<Asked<CostReport>>;
  /** What lost caches cost. Only a pi with the part `cache` knows it. */
  readonly cache: ReadonlySignal<Asked<CacheReport>>;
  /** Reads both, and the cache's again after each request until the returned function is called. */
  look(): () => void;
  reload(): Promise<Outcome>;
}

export interface CostsOptions {
  readonly daemon: Daemon;
  readonly page: Page;
  readonly sessionId: string;
}

export class SessionCosts implements Costs {
  readonly #options: CostsOptions;
  readonly #report = signal<Asked<CostReport>>({ kind: "asking" });
  readonly #cache = signal<Asked<CacheReport>>({ kind: "asking" });
  readonly #stopWatching: () => void;
  readonly #again: Rereading;
  #lookers = 0;

  constructor(options: CostsOptions) {
    this.#options = options;
    this.#again = new Rereading({ page: options.page, read: () => this.#readAll() });
    this.#stopWatching = this.#again.watch();
    this.changed();
  }

  get report(): ReadonlySignal<Asked<CostReport>> {
    return this.#report;
  }

  get cache(): ReadonlySignal<Asked<CacheReport>> {
    return this.#cache;
  }

  look(): () => void {
    this.#lookers += 1;
    this.changed();
    return () => {
      this.#lookers -= 1;
    };
  }

  async reload(): Promise<Outcome> {
    const report = await this.#readReport();
    return report.kind === "done" ? done : report;
  }

  /** Something was spent. */
  changed(): void {
    this.#again.changed();
  }

  close(): void {
    this.#again.close();
    this.#stopWatching();
  }

  async #readAll(): Promise<void> {
    await this.#readReport();
    if (this.#lookers > 0) await this.#readCache();
  }

  async #readReport(): Promise<Outcome<CostReport>> {
    const { daemon, sessionId } = this.#options;
    const outcome = await outcomeOf(() => read(daemon, "cost/report", { sessionId }));
    if (!this.#again.isClosed) keep(this.#report, outcome);
    return outcome;
  }

  async #readCache(): Promise<void> {
    const { daemon, sessionId } = this.#options;
    const outcome = await outcomeOf(() => read(daemon, "cache/report", { sessionId }));
    if (!this.#again.isClosed) keep(this.#cache, outcome);
  }
}

function keep<Value>(into: { value: Asked<Value>; peek(): Asked<Value> }, outcome: Outcome<Value>): void {
  if (outcome.kind === "done") into.value = { kind: "known", value: outcome.value };
  else if (into.peek().kind !== "known") into.value = outcome;
}
