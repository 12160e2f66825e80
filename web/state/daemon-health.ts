import { type ReadonlySignal, signal } from "@preact/signals";
import { type DaemonInfo, WireError } from "../../client/browser.ts";
import type { Readiness } from "../../protocol/daemon.ts";
import type { Metric } from "../../protocol/metrics-methods.ts";
import type { Known } from "./choices.ts";
import type { Daemon } from "./daemon.ts";
import { outcomeOf, wordsOf } from "./outcome.ts";
import type { Page } from "./page.ts";
import { act, read } from "./reading.ts";
import { whileVisible } from "./visible.ts";
import type { PartOptions } from "./workspace.ts";

/** Whether the daemon is ready, or each reason why not. */
export interface ReadyState {
  readonly reasons: readonly string[];
  readonly checks: Omit<Readiness, "ready"> | undefined;
}

/** What the daemon says about itself. */
export interface DaemonHealth {
  readonly info: ReadonlySignal<Known<DaemonInfo>>;
  readonly ready: ReadonlySignal<Known<ReadyState>>;
  /** When both were read. Unix time in milliseconds. */
  readonly readAt: ReadonlySignal<number | undefined>;
  readonly metrics: ReadonlySignal<Known<readonly Metric[]>>;
  /** Reads both again and again while the page is visible, until the returned function is called. */
  watch(): () => void;
  /** Reads the metrics once. Each reading begins a new measurement of the daemon's event loop, also for other readers. */
  readMetrics(): Promise<void>;
}

/** From one answer to the next question. */
const pauseMs = 5_000;

export class ReadHealth implements DaemonHealth {
  readonly #daemon: Daemon;
  readonly #page: Page;
  readonly info = signal<Known<DaemonInfo>>({ kind: "asking" });
  readonly ready = signal<Known<ReadyState>>({ kind: "asking" });
  readonly readAt = signal<number | undefined>(undefined);
  readonly metrics = signal<Known<readonly Metric[]>>({ kind: "unknown" });

  constructor({ daemon, page }: PartOptions) {
    this.#daemon = daemon;
    this.#page = page;
  }

  watch(): () => void {
    return whileVisible(this.#page, () => {
      let isOn = true;
      let timer: ReturnType<typeof setTimeout> | undefined;
      const again = async (): Promise<void> => {
        await this.#read(() => isOn);
        if (isOn) timer = setTimeout(() => void again(), pauseMs);
      };
      void again();
      return () => {
        isOn = false;
        clearTimeout(timer);
      };
    });
  }

  async readMetrics(): Promise<void> {
    this.metrics.value = { kind: "asking" };
    const outcome = await outcomeOf(() => act(this.#daemon, "daemon/metrics", {}));
    this.metrics.value = outcome.kind === "refused" ? outcome : { kind: "known", value: outcome.value.metrics };
  }

  async #read(isOn: () => boolean): Promise<void> {
    const [info, ready] = await Promise.all([
      outcomeOf(() => read(this.#daemon, "daemon/info", {})),
      this.#readiness(),
    ]);
    if (!isOn()) return;
    this.info.value = info.kind === "done" ? { kind: "known", value: info.value } : info;
    this.ready.value = ready;
    this.readAt.value = this.#page.now();
  }

  async #readiness(): Promise<Known<ReadyState>> {
    try {
      const checks = await read(this.#daemon, "daemon/ready", {});
      return { kind: "known", value: { reasons: [], checks } };
    } catch (error) {
      if (!(error instanceof WireError) || error.kind !== "not_ready")
        return { kind: "refused", words: wordsOf(error) };
      const { reasons, checks } = error.data as { reasons?: readonly string[]; checks?: ReadyState["checks"] };
      return { kind: "known", value: { reasons: reasons ?? [error.message], checks } };
    }
  }
}
