import type { DeliveryTracker } from "../delivery/tracker.ts";
import type { DialogRegistry } from "../dialogs/dialog-registry.ts";
import type { Registry } from "../session/registry.ts";
import type { Session } from "../session/session.ts";
import type { AuthorityOptions } from "./authority.ts";
import type { Clients } from "./clients.ts";
import type { GovernanceOptions } from "./governance.ts";

/** Who may act in which session: as its control says. What is not there is for the handler to say. */
export function governance(
  clients: Clients,
  registry: Registry,
  tracker: DeliveryTracker,
  dialogs: DialogRegistry,
): GovernanceOptions {
  return {
    by: (peer) => clients.by(peer),
    check: (sessionId, by) => registry.find(sessionId)?.control.check(by),
    sessionOf: {
      sessionId: (id) => id,
      deliveryId: (id) => tracker.find(id)?.sessionId,
      dialogId: (id) => dialogs.find(id)?.sessionId,
      promptId: (id) => registry.findPrompt(id)?.sessionId,
    },
  };
}

/** Whether a session has no pi, so that whatever needs one starts it. */
export function asleepIn(registry: Registry): (sessionId: string) => boolean {
  return (sessionId) => {
    const session = registry.find(sessionId);
    return session !== undefined && isAsleep(session);
  };
}

export function isAsleep({ state: { kind } }: Session): boolean {
  return kind === "hibernated" || kind === "crashed";
}

/** Which sessions there are for a token. */
export function authority(registry: Registry, tracker: DeliveryTracker, dialogs: DialogRegistry): AuthorityOptions {
  return {
    scopeOf: (sessionId) => registry.find(sessionId)?.stored,
    sessionOf: {
      sessionId: (id) => id,
      deliveryId: (id) => tracker.find(id)?.sessionId,
      dialogId: (id) => dialogs.sessionOf(id),
      promptId: (id) => registry.findPrompt(id)?.sessionId,
    },
  };
}
