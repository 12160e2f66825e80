import { acp } from "./figures/acp.ts";
import { bridgeComparison } from "./figures/bridges.ts";
import { commands, prompt } from "./figures/command-line.ts";
import { webConsole } from "./figures/console.ts";
import { create, parallelCreates } from "./figures/create.ts";
import { daemonStart } from "./figures/daemon-start.ts";
import { eventThroughput } from "./figures/event-throughput.ts";
import { fanOut } from "./figures/fan-out.ts";
import { frontEnd } from "./figures/front-end.ts";
import { httpRequests } from "./figures/http-requests.ts";
import { lean, leanPart } from "./figures/lean.ts";
import { liveRestore } from "./figures/live-restore.ts";
import { manySessions, twoHundredSessions } from "./figures/many-sessions.ts";
import { neighbours } from "./figures/neighbours.ts";
import { opencode } from "./figures/opencode.ts";
import { optimisation } from "./figures/optimisation.ts";
import { overload } from "./figures/overload.ts";
import { piRate } from "./figures/pi-rate.ts";
import { pruning } from "./figures/pruning.ts";
import { pushAcceptance, pushAcceptanceOnSlowDisk } from "./figures/push-acceptance.ts";
import { pushDelivered } from "./figures/push-delivered.ts";
import { reconnectStorm, replay } from "./figures/replay.ts";
import { requestLatency, requestLatencyOnOneCore } from "./figures/request-latency.ts";
import { residentMemory, streamMemory } from "./figures/resident-memory.ts";
import { storeInEventPath } from "./figures/store-in-event-path.ts";
import type { Figure } from "./lib/figure.ts";

/** Every figure by its name on the command line, in the order of a full run. */
export const figures = {
  latency: requestLatency,
  "latency-one-core": requestLatencyOnOneCore,
  throughput: eventThroughput,
  "pi-rate": piRate,
  bridges: bridgeComparison,
  overload,
  neighbours,
  "fan-out": fanOut,
  "many-sessions": manySessions,
  "two-hundred-sessions": twoHundredSessions,
  http: httpRequests,
  create,
  "parallel-creates": parallelCreates,
  memory: residentMemory,
  "stream-memory": streamMemory,
  "push-accepted": pushAcceptance,
  "push-accepted-slow-disk": pushAcceptanceOnSlowDisk,
  "push-delivered": pushDelivered,
  "store-in-event-path": storeInEventPath,
  replay,
  "reconnect-storm": reconnectStorm,
  "live-restore": liveRestore,
  start: daemonStart,
  commands,
  prompt,
  "front-end": frontEnd,
  acp,
  console: webConsole,
  opencode,
  optimisation,
  pruning,
  lean,
  "lean-parts": leanPart,
} as const satisfies Readonly<Record<string, Figure>>;

export type FigureName = keyof typeof figures;

export function isFigureName(name: string): name is FigureName {
  return Object.hasOwn(figures, name);
}
