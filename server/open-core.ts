import type { Delivery } from "../protocol/delivery.ts";
import { limits } from "./configuration/limits.ts";
import { DeliveryTracker } from "./delivery/tracker.ts";
import { type DialogLimits, DialogRegistry } from "./dialogs/dialog-registry.ts";
import type { ResourceStack } from "./lib/resource-stack.ts";
import { Registry, type RegistryOptions } from "./session/registry.ts";
import type { Database } from "./store/database.ts";
import { DeliveryStore } from "./store/deliveries.ts";
import { DialogStore } from "./store/dialogs.ts";
import { PromptStore } from "./store/prompts.ts";

export interface CoreOptions extends Omit<RegistryOptions, "prompts" | "tracker" | "dialogs"> {
  readonly database: Database;
  readonly dialogDelayMs?: DialogLimits["dialogDelayMs"];
  /** The clock of kept data. Default: that of the process. */
  readonly now?: (() => number) | undefined;
  /** Called for each change of a delivery, before its session tells its subscribers. */
  readonly onDelivery?: (delivery: Delivery) => void;
}

/**
 * Opens the core of a daemon on a store: its sessions, with their deliveries, prompts and dialogs. `resources` gets what
 * closes it, which ends the children that cannot survive it, and keeps the sessions.
 */
export function openCore(options: CoreOptions, resources: ResourceStack) {
  const { database, directory, sessions, dialogDelayMs, now, onDelivery, log } = options;
  const deliveries = new DeliveryStore(database, limits.settled, now);
  const prompts = new PromptStore(database, now);
  const dialogs = new DialogRegistry(new DialogStore(database), {
    ...limits.dialogs,
    ...(dialogDelayMs === undefined ? {} : { dialogDelayMs }),
  });
  const tracker = new DeliveryTracker({
    store: deliveries,
    ...limits.delivery,
    log,
    isGone: (sessionId) => sessions.isOrphaned(sessionId),
    isLeft: (sessionId) => options.survival?.leftIn(sessionId) !== undefined,
    onChange: (delivery) => {
      onDelivery?.(delivery);
      directory.find(delivery.sessionId)?.deliveryChanged(delivery);
    },
    onExpired: ({ sessionId, deliveryId }) => directory.find(sessionId)?.pushing.expire(deliveryId),
  });
  resources.defer(() => tracker.close());
  const registry = new Registry({ ...options, prompts, tracker, dialogs });
  // A daemon that served has ended its children before.
  resources.defer(() => registry.leave());
  return { deliveries, prompts, dialogs, tracker, registry };
}
