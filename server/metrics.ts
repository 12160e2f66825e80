import { monitorEventLoopDelay } from "node:perf_hooks";
import type { Delivery } from "../protocol/delivery.ts";
import type { Metric } from "../protocol/metrics-methods.ts";
import type { DeliveryTracker } from "./delivery/tracker.ts";
import type { DialogRegistry } from "./dialogs/dialog-registry.ts";
import type { Edge } from "./edge/app.ts";
import { Histogram } from "./lib/histogram.ts";
import { keptFor } from "./lib/kept-for.ts";
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
  readonly edge: () => Edge | undefined;
}

type Labels = Readonly<Record<string, string>>;

const deliveryBounds = [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 1_800, 3_600];
const sessionStates = ["starting", "idle", "running", "hibernated", "crashed"];
/** How often a timer looks how late it is. */
const loopResolutionMs = 20;

/** The system is not asked more often. */
const residentBytes = keptFor(1_000, () => process.memoryUsage.rss());

/** What the daemon measures of itself. What is counted anyway is only read here, when somebody asks. */
export class Metrics {
  readonly #untilDelivered = new Histogram(deliveryBounds);
  #loopDelay: ReturnType<typeof monitorEventLoopDelay> | undefined;

  /** Every change of every delivery. */
  deliveryChanged({ state, history }: Delivery): void {
    if (state !== "delivered") return;
    const accepted = history[0]?.at;
    const delivered = history.at(-1);
    if (accepted === undefined || delivered?.state !== "delivered") return;
    this.#untilDelivered.observe(Math.max(0, delivered.at - accepted) / 1_000);
  }

  collect(sources: MetricSources): readonly Metric[] {
    const { registry, tracker, dialogs, logs, database } = sources;
    const states = new Map<string, number>(sessionStates.map((state) => [state, 0]));
    let waiting = 0;
    for (const session of registry.all()) {
      states.set(session.state.kind, (states.get(session.state.kind) ?? 0) + 1);
      waiting += session.scope.length;
    }
    const { occupancy, warm } = registry.children;
    const edge = sources.edge();
    return [
      gauge("pi_rpcd_uptime_seconds", "Since the daemon has started.", (Date.now() - sources.startedAt) / 1_000),
      byLabel("pi_rpcd_sessions", "Sessions, by state.", "state", states),
      gauge("pi_rpcd_children", "pi processes of sessions.", occupancy.size),
      gauge("pi_rpcd_warm_children", "pi processes that wait for a session.", warm),
      gauge(
        "pi_rpcd_children_private_bytes",
        "Their memory that they do not share, when it was last weighed.",
        occupancy.bytes,
      ),
      counter("pi_rpcd_child_starts_total", "pi processes that were started for sessions.", occupancy.started),
      counter("pi_rpcd_child_crashes_total", "pi processes of sessions that ended unasked.", occupancy.crashed),
      counter("pi_rpcd_events_total", "Notifications of all sessions that got a number.", logs.appended),
      gauge("pi_rpcd_retained_event_bytes", "Notifications in memory, for those who come back.", logs.retainedBytes),
      gauge("pi_rpcd_waiting_calls", "Calls that wait for their turn at a session.", waiting),
      byLabel("pi_rpcd_open_deliveries", "Deliveries that are on their way, by state.", "state", tracker.openByState()),
      histogram("pi_rpcd_delivery_seconds", "From a push's acceptance to its delivery.", this.#untilDelivered),
      gauge("pi_rpcd_open_dialogs", "Questions of extensions that wait for an answer.", dialogs.openCount),
      gauge("pi_rpcd_connections", "WebSocket connections.", edge?.connections ?? 0),
      counter("pi_rpcd_dropped_deltas_total", "Deltas that slow readers did not get.", edge?.droppedDeltas ?? 0),
      counter("pi_rpcd_store_commits_total", "Transactions of the store, over all daemons.", database.commits),
      histogram("pi_rpcd_store_commit_seconds", "From a transaction's begin to its sync.", database.commitTimes),
      gauge("pi_rpcd_store_unwritten", "Changes that wait until the store can be written again.", database.unwritten),
      gauge("pi_rpcd_resident_bytes", "The daemon's own memory.", residentBytes()),
      counter("pi_rpcd_lost_log_lines_total", "Lines that the log's file has not taken.", sources.lostLogLines()),
      this.#loop(),
    ];
  }

  /** Measured from the first time that somebody asks: the timer for it costs a little. */
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
      help: "How late a timer was, since this was last asked for.",
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
