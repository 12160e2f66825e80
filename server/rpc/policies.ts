import type { Logger } from "pino";
import { WireError } from "../../protocol/errors.ts";
import type { MethodRow } from "../../protocol/method-row.ts";
import { resolveOptimisation } from "../../protocol/optimisation/resolve.ts";
import { resolvePruning } from "../../protocol/pruning/resolve.ts";
import type { DeliveryTracker } from "../delivery/tracker.ts";
import type { DialogRegistry } from "../dialogs/dialog-registry.ts";
import type { Registry } from "../session/registry.ts";
import type { Session } from "../session/session.ts";
import { answerAsleep, isAsleep } from "./asleep.ts";
import { audit } from "./audit.ts";
import { authority } from "./authority.ts";
import type { Policy } from "./call.ts";
import type { Clients } from "./clients.ts";
import { attribution, control, type SessionOf } from "./governance.ts";
import { idempotency, type KeyStore } from "./idempotency.ts";
import { paramOf } from "./params.ts";
import { type RateLimits, rateLimit } from "./rates.ts";

export interface PoliciesOptions {
  readonly clients: Clients;
  readonly registry: Registry;
  readonly tracker: DeliveryTracker;
  readonly dialogs: DialogRegistry;
  readonly keys: KeyStore;
  readonly limits: {
    readonly rates: RateLimits;
    /** pi reads longer session files. */
    readonly maxAnsweringFileBytes: number;
    /** Maximum number of calls that wait for a session file to be read. */
    readonly maxWaitingCalls: number;
  };
  /** Gets a line for each call that changed something. */
  readonly calls: Logger;
  readonly log: Logger;
}

/** The policies of every method, the outermost first. The validation of params comes before all of them. */
export function policies(options: PoliciesOptions): readonly Policy[] {
  const { clients, registry, tracker, dialogs, keys, limits, calls, log } = options;
  // Also of dialogs, deliveries and prompts that have ended: ids stay with their session.
  const sessionOf: SessionOf = {
    session: (id) => id,
    delivery: (id) => tracker.find(id)?.sessionId,
    dialog: (id) => dialogs.sessionOf(id),
    prompt: (id) => registry.findPrompt(id)?.sessionId,
  };
  return [
    // First: audit, control and handlers need the client.
    attribution((peer) => clients.by(peer)),
    // Before authority: refused calls are logged too.
    audit({ calls, log, sessionOf }),
    // Before everything that depends on the state of a session: a token learns nothing of sessions outside its limits.
    authority({ sessionOf, scopeOf: (sessionId) => registry.find(sessionId)?.stored }),
    // After authority: a call that a token may not make does not use up its rate. Before the rest: refusals count too.
    rateLimit({ limits: limits.rates, isAsleep: (sessionId) => isAsleepIn(registry, sessionId) }),
    // Before idempotency: a client without control does not get the stored result of a call.
    control({ check: (sessionId, by) => registry.find(sessionId)?.control.check(by), sessionOf }),
    // Before the checks of the session: a repeated call gets its first result, whatever has changed since.
    idempotency({
      store: keys,
      lookups: {
        prompt: (id) => registry.findPrompt(id) !== undefined,
        session: (id) => registry.find(id) !== undefined,
      },
    }),
    // Before the next: a query about a part that is off has no answer, not even an earlier one.
    requirePart(registry),
    // Last: it takes the place of the handler.
    answerAsleep({
      registry,
      maxFileBytes: limits.maxAnsweringFileBytes,
      maxWaitingCalls: limits.maxWaitingCalls,
    }),
  ];
}

function isAsleepIn(registry: Registry, sessionId: string): boolean {
  const session = registry.find(sessionId);
  return session !== undefined && isAsleep(session);
}

const requirements: Readonly<Record<NonNullable<MethodRow["part"]>, (stored: Session["stored"]) => void>> = {
  pruning: requirePruned,
  cacheAudit: requireCacheAudit,
};

/** Throws `pruning_disabled` or `unsupported_by_pi` if the part that a method needs is off in the session. */
export function requirePart(registry: Pick<Registry, "find">): Policy {
  return ({ row: { part } }, next) => {
    if (part === undefined) return next;
    const require = requirements[part];
    return (params, call) => {
      const sessionId = paramOf(params, "sessionId");
      const session = typeof sessionId === "string" ? registry.find(sessionId) : undefined;
      if (session !== undefined) require(session.stored);
      return next(params, call);
    };
  };
}

// Refusals that follow from a session's configuration, so that no pi is started.

/** Throws `pruning_disabled`. */
function requirePruned(stored: Session["stored"]): void {
  const { enabled, childSessions } = resolvePruning(stored.options.pruning ?? {});
  if (!enabled) {
    const how = 'pruning/configure with {"enabled": true} turns it on';
    throw new WireError("pruning_disabled", `Pruning is off for this session; ${how}.`, { reason: "disabled" });
  }
  if (stored.delegatedBy === undefined || childSessions) return;
  const why = "it works on behalf of another one, and pruning.childSessions is false";
  throw new WireError("pruning_disabled", `Pruning is off for this session: ${why}.`, { reason: "child_session" });
}

/** Throws `unsupported_by_pi`. */
function requireCacheAudit({ options }: Session["stored"]): void {
  const { cache } = resolveOptimisation(options.optimisation ?? {});
  if (!cache.enabled || !cache.audit) {
    throw new WireError("unsupported_by_pi", 'The part "cache" is off in this session.');
  }
}
