import { attach } from "./figures/attach.ts";
import { coldCreate } from "./figures/cold-create.ts";
import { commandStart } from "./figures/command-start.ts";
import { concurrentCreates } from "./figures/concurrent-creates.ts";
import { contextCost } from "./figures/context.ts";
import { cost } from "./figures/cost.ts";
import { dynamicTools } from "./figures/dynamic-tools.ts";
import { estimatorError } from "./figures/estimator-error.ts";
import { eventLog } from "./figures/event-log.ts";
import { eventStreams } from "./figures/event-streams.ts";
import { eventThroughput } from "./figures/event-throughput.ts";
import { extensionTime } from "./figures/extension-time.ts";
import { fanOut } from "./figures/fan-out.ts";
import { hibernation } from "./figures/hibernation.ts";
import { httpRequests } from "./figures/http-requests.ts";
import { manySessions } from "./figures/many-sessions.ts";
import { neighbours } from "./figures/neighbours.ts";
import { observerCost } from "./figures/observer-cost.ts";
import { optimisation } from "./figures/optimisation.ts";
import { promptSections } from "./figures/prompt-sections.ts";
import { pruning } from "./figures/pruning.ts";
import { pruningRender } from "./figures/pruning-render.ts";
import { pushAcceptance } from "./figures/push-acceptance.ts";
import { pushDelivered } from "./figures/push-delivered.ts";
import { realPiEvents } from "./figures/real-pi-events.ts";
import { recordSize } from "./figures/record-size.ts";
import { replay } from "./figures/replay.ts";
import { requestLatency } from "./figures/request-latency.ts";
import { requestLatencyPinned } from "./figures/request-latency-pinned.ts";
import { residentMemory } from "./figures/resident-memory.ts";
import { rivalBridges } from "./figures/rival-bridges.ts";
import { storeInEventPath } from "./figures/store-in-event-path.ts";
import { storeSize } from "./figures/store-size.ts";
import { warmCreate } from "./figures/warm-create.ts";
import type { Figure } from "./lib/figure.ts";

/** Every figure by its name on the command line, in the order of a full run. */
export const figures = {
  "latency-pinned": requestLatencyPinned,
  latency: requestLatency,
  throughput: eventThroughput,
  rivals: rivalBridges,
  "record-size": recordSize,
  "real-pi": realPiEvents,
  neighbours,
  "fan-out": fanOut,
  "many-sessions": manySessions,
  http: httpRequests,
  "event-streams": eventStreams,
  attach,
  "cold-create": coldCreate,
  "warm-create": warmCreate,
  "concurrent-creates": concurrentCreates,
  hibernation,
  memory: residentMemory,
  "push-accepted": pushAcceptance,
  "push-delivered": pushDelivered,
  "observer-cost": observerCost,
  "store-in-event-path": storeInEventPath,
  "store-size": storeSize,
  "event-log": eventLog,
  replay,
  "command-start": commandStart,
  context: contextCost,
  "estimator-error": estimatorError,
  optimisation,
  pruning,
  "pruning-render": pruningRender,
  cost,
  "prompt-sections": promptSections,
  "extension-time": extensionTime,
  "dynamic-tools": dynamicTools,
} as const satisfies Readonly<Record<string, Figure>>;

export type FigureName = keyof typeof figures;

export function isFigureName(name: string): name is FigureName {
  return Object.hasOwn(figures, name);
}
