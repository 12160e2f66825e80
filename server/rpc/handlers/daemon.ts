import { existsSync } from "node:fs";
import type { DaemonInfo, PiInfo, Readiness, StoreInfo } from "../../../protocol/daemon.ts";
import type { daemonMethods } from "../../../protocol/daemon-methods.ts";
import { WireError } from "../../../protocol/errors.ts";
import { openRpcDocument } from "../../../protocol/openrpc.ts";
import { MAIN_TOKEN } from "../../../protocol/token-methods.ts";
import { PROTOCOL_VERSION } from "../../../protocol/wire.ts";
import { limits } from "../../configuration/limits.ts";
import type { LiveRestoreFacts } from "../../core/live-restore-facts.ts";
import type { DialogRegistry } from "../../dialogs/dialog-registry.ts";
import { residentBytes } from "../../lib/resident-bytes.ts";
import type { Feed } from "../../log/feed.ts";
import type { Registry } from "../../session/registry.ts";
import { keepText } from "../answer-text.ts";
import { type HandlersOf, peerOf } from "../call.ts";
import type { Grant } from "../grant.ts";

export interface DaemonFacts {
  readonly version: string;
  readonly startedAt: number;
  readonly instance: string;
  readonly stateDir: string;
  readonly pi: PiInfo;
  readonly keyVariables: readonly string[];
  readonly connections: () => number;
  readonly store: () => StoreInfo;
  readonly lostLogLines: () => number;
  readonly feed: Feed;
  readonly liveRestore: LiveRestoreFacts;
}

export function daemonHandlers(
  facts: DaemonFacts,
  registry: Registry,
  { answerers }: Pick<DialogRegistry, "answerers">,
): HandlersOf<typeof daemonMethods> {
  let document: { openrpc: string } | undefined;
  return {
    "daemon/info": (_params, { grant }) => daemonInfo(facts, registry, grant),
    "daemon/ready": () => readiness(facts),
    "daemon/subscribe": ({ after, epoch, deliveries, dialogs }, call) => {
      const peer = peerOf(call);
      const covers = call.grant?.limits;
      registry.watch.add(peer, {
        covers,
        ...(after === undefined && { sessions: true }),
        ...(deliveries !== undefined && { deliveries }),
        ...(dialogs !== undefined && { dialogs: dialogs !== "off" }),
      });
      if (dialogs === "answer") answerers.add(peer, { clientId: call.by?.clientId, covers });
      else if (dialogs !== undefined) answerers.remove(peer.id);
      if (after === undefined) return {};
      return facts.feed.follow(peer, { after, epoch, covers, whenAnswered: call.whenAnswered?.bind(call) });
    },
    "daemon/unsubscribe": (_params, call) => {
      const { id } = peerOf(call);
      answerers.remove(id);
      const [watched, followed] = [registry.watch.remove(id), facts.feed.unfollow(id)];
      return { wasSubscribed: watched || followed };
    },
    "rpc.discover": () => {
      document ??= keepText(openRpcDocument(facts.version) as { openrpc: string });
      return document;
    },
  };
}

/** Counts only sessions within the grant's limits. */
function daemonInfo(facts: DaemonFacts, registry: Registry, grant: Grant | undefined): DaemonInfo {
  const covers = grant?.limits;
  const { path, version, source, capabilities } = facts.pi;
  const sessions: Record<string, number> = {};
  for (const { state, stored } of registry.all()) {
    if (covers?.(stored) !== false) sessions[state.kind] = (sessions[state.kind] ?? 0) + 1;
  }
  const store = facts.store();
  return {
    pid: process.pid,
    version: facts.version,
    protocol: PROTOCOL_VERSION,
    startedAt: facts.startedAt,
    instance: facts.instance,
    stateDir: facts.stateDir,
    pi: { path, version, source, capabilities },
    sessions,
    warmChildren: registry.children.warm,
    connections: facts.connections(),
    residentBytes: residentBytes(),
    // The names of damaged parts contain session ids.
    store: covers === undefined ? store : { ...store, damaged: [] },
    capabilities: [...(grant?.capabilities ?? [])],
    // Clients with fewer permissions learn nothing of the user's environment.
    ...(grant?.name === MAIN_TOKEN && { keyVariables: [...facts.keyVariables] }),
    liveRestore: { ...facts.liveRestore },
    feed: facts.feed.place,
  };
}

export interface ReadinessFacts {
  readonly pi: Pick<PiInfo, "path">;
  readonly store: () => StoreInfo;
  readonly lostLogLines: () => number;
}

/** Whether the daemon can work. Throws `not_ready`, with every reason, if it cannot. */
export async function readiness({ pi, store, lostLogLines }: ReadinessFacts): Promise<Readiness> {
  const eventLoopDelayMs = await loopDelayMs();
  const { state, why } = store();
  const found = existsSync(pi.path);
  const checks = {
    store: state,
    pi: found ? "found" : "missing",
    eventLoopDelayMs,
    lostLogLines: lostLogLines(),
  } as const;
  const reasons = [
    ...(state === "open" ? [] : [`The store cannot be written: ${why ?? "it fails"}.`]),
    ...(found ? [] : [`${pi.path} no longer exists.`]),
    ...(eventLoopDelayMs <= limits.maxLoopDelayMs ? [] : [`The event loop is ${eventLoopDelayMs} ms late.`]),
  ];
  if (reasons.length === 0) return { ready: true, ...checks };
  throw new WireError("not_ready", reasons.join(" "), { reasons, checks });
}

/** How late a timer fires, in milliseconds. */
async function loopDelayMs(): Promise<number> {
  const startedAt = performance.now();
  await new Promise((resolve) => setTimeout(resolve, 1));
  return Math.max(0, Math.round(performance.now() - startedAt - 1));
}
