import { monitorEventLoopDelay } from "node:perf_hooks";
import type { Delivery } from "../protocol/delivery.ts";
import type { Metric } from "../protocol/metrics-methods.ts";
import type { LiveRestoreFacts } from "./core/live-restore-facts.ts";
import type { DeliveryTracker } from "./delivery/tracker.ts";
import type { DialogRegistry } from "./dialogs/dialog-registry.ts";
import type { EdgeLoad } from "./edge/edge-load.ts";
import { Histogram } from "./lib/histogram.ts";
import { residentBytes } from "./lib/resident-bytes.ts";
import type { Logs } from "./log/logs.ts";
import type { Registry } from "./session/registry.ts";
import type { Database } from "./store/database.ts";

export interface MetricSources {
  readonly startedAt: number;
  readonly lostLogLines: () => number;
  readonly registry: Registry;
  readonly tracker: DeliveryTracker;
  readonly dialogs: DialogRegistry;
  readonly logs: Logs;
  readonly database: Database;
  readonly load: EdgeLoad;
  readonly liveRestore: LiveRestoreFacts;
}

type Labels = Readonly<Record<string, string>>;

const deliveryBounds = [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 1_800, 3_600];
const sessionStates = ["starting", "idle", "running", "hibernated", "crashed"];
/** The resolution of the timer that measures event loop delay. */
const loopResolutionMs = 20;

/** The daemon's metrics. Existing counters are read only on request. */
export class Metrics {
  readonly #untilDelivered = new Histogram(deliveryBounds);
  #loopDelay: ReturnType<typeof monitorEventLoopDelay> | undefined;

  /** Receives every change of every delivery. */
  deliveryChanged({ state, history }: Delivery): void {
    if (state !== "delivered") return;
    const accepted = history[0]?.at;
    const delivered = history.at(-1);
    if (accepted === undefined || delivered?.state !== "delivered") return;
    this.#untilDelivered.observe(Math.max(0, delivered.at - accepted) / 1_000);
  }

  collect(sources: MetricSources): readonly Metric[] {
    const { registry, tracker, dialogs, logs, database, load, liveRestore } = sources;
    const states = new Map<string, number>(sessionStates.map((state) => [state, 0]));
    let waiting = 0;
    for (const session of registry.all()) {
      states.set(session.state.kind, (states.get(session.state.kind) ?? 0) + 1);
      waiting += session.scope.length;
    }
    const { occupancy, warm } = registry.children;
    return [
      gauge("pi_rpcd_uptime_seconds", "Time since the daemon started.", (Date.now() - sources.startedAt) / 1_000),
      byLabel("pi_rpcd_sessions", "Sessions, by state.", "state", states),
      gauge("pi_rpcd_children", "pi processes of sessions.", occupancy.size),
      gauge("pi_rpcd_warm_children", "Warm pi processes without a session.", warm),
      gauge(
        "pi_rpcd_children_private_bytes",
        "Unshared memory of the pi processes at the last measurement.",
        occupancy.bytes,
      ),
      counter("pi_rpcd_child_starts_total", "pi processes started for sessions.", occupancy.started),
      counter("pi_rpcd_child_crashes_total", "pi processes of sessions that ended unexpectedly.", occupancy.crashed),
      counter("pi_rpcd_child_restores_total", "pi processes of a former daemon that continued.", liveRestore.restored),
      counter("pi_rpcd_child_losses_total", "pi processes of a former daemon that were lost.", liveRestore.lost),
      counter("pi_rpcd_events_total", "Numbered notifications of all sessions.", logs.appended),
      gauge("pi_rpcd_retained_event_bytes", "Notifications in memory for reconnecting clients.", logs.retainedBytes),
      gauge("pi_rpcd_waiting_calls", "Calls that wait for their turn at a session.", waiting),
      byLabel("pi_rpcd_open_deliveries", "Open deliveries, by state.", "state", tracker.openByState()),
      histogram("pi_rpcd_delivery_seconds", "Time from a push's acceptance to its delivery.", this.#untilDelivered),
      gauge("pi_rpcd_open_dialogs", "Open dialogs of extensions.", dialogs.openCount),
      gauge("pi_rpcd_connections", "WebSocket connections.", load.connections),
      counter("pi_rpcd_dropped_deltas_total", "Deltas that were dropped for slow readers.", load.droppedDeltas),
      counter("pi_rpcd_store_commits_total", "Transactions of the store since it was created.", database.commits),
      histogram("pi_rpcd_store_commit_seconds", "Time from a transaction's begin to its sync.", database.commitTimes),
      gauge("pi_rpcd_store_unwritten", "Changes that wait for a failing store.", database.unwritten),
      gauge("pi_rpcd_resident_bytes", "The daemon's own memory.", residentBytes()),
      counter("pi_rpcd_lost_log_lines_total", "Log lines that could not be written.", sources.lostLogLines()),
      this.#loop(),
    ];
  }

  /** Measured from the first request on, because the timer has a small cost. */
  #loop(): Metric {
    if (this.#loopDelay === undefined) {
      this.#loopDelay = monitorEventLoopDelay({ resolution: loopResolutionMs });
      this.#loopDelay.enable();
    }
    const delay = this.#loopDelay;
    const late = (nanoseconds: number): number =>
      Number.isFinite(nanoseconds) ? Math.max(0, nanoseconds / 1e9 - loopResolutionMs / 1_000) : 0;
    const samples = [
      { labels: { quantile: "0.5" }, value: late(delay.percentile(50)) },
      { labels: { quantile: "0.99" }, value: late(delay.percentile(99)) },
      { labels: { quantile: "1" }, value: late(delay.max) },
    ];
    delay.reset();
    return {
      name: "pi_rpcd_event_loop_delay_seconds",
      help: "Delay of the event loop since the previous request.",
      type: "gauge",
      samples,
    };
  }

  close(): void {
    this.#loopDelay?.disable();
  }
}

function gauge(name: string, help: string, value: number, labels?: Labels): Metric {
  return { name, help, type: "gauge", samples: [{ ...(labels && { labels }), value }] };
}

function counter(name: string, help: string, value: number): Metric {
  return { name, help, type: "counter", samples: [{ value }] };
}

function byLabel(name: string, help: string, label: string, values: ReadonlyMap<string, number>): Metric {
  const samples = Array.from(values, ([key, value]) => ({ labels: { [label]: key }, value }));
  return { name, help, type: "gauge", samples };
}

function histogram(name: string, help: string, { state }: Histogram): Metric {
  return { name, help, type: "histogram", buckets: [...state.buckets], count: state.count, sum: state.sum };
}
