import { commandStart } from "./figures/command-start.ts";
import { eventThroughput } from "./figures/event-throughput.ts";
import { fanOut } from "./figures/fan-out.ts";
import { httpRequests } from "./figures/http-requests.ts";
import { manySessions } from "./figures/many-sessions.ts";
import { neighbours } from "./figures/neighbours.ts";
import { optimisation } from "./figures/optimisation.ts";
import { pruning } from "./figures/pruning.ts";
import { pushAcceptance } from "./figures/push-acceptance.ts";
import { pushDelivered } from "./figures/push-delivered.ts";
import { replay } from "./figures/replay.ts";
import { requestLatency } from "./figures/request-latency.ts";
import { residentMemory } from "./figures/resident-memory.ts";
import { storeInEventPath } from "./figures/store-in-event-path.ts";
import { warmCreate } from "./figures/warm-create.ts";
import type { Figure } from "./lib/figure.ts";

/** Every figure by its name on the command line, in the order of a full run. */
export const figures = {
  latency: requestLatency,
  throughput: eventThroughput,
  neighbours,
  "fan-out": fanOut,
  "many-sessions": manySessions,
  http: httpRequests,
  "warm-create": warmCreate,
  memory: residentMemory,
  "push-accepted": pushAcceptance,
  "push-delivered": pushDelivered,
  "store-in-event-path": storeInEventPath,
  replay,
  "command-start": commandStart,
  optimisation,
  pruning,
} as const satisfies Readonly<Record<string, Figure>>;

export type FigureName = keyof typeof figures;

export function isFigureName(name: string): name is FigureName {
  return Object.hasOwn(figures, name);
}
