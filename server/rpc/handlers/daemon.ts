import type { DaemonInfo, PiInfo, StoreInfo } from "../../../protocol/daemon.ts";
import type { daemonMethods } from "../../../protocol/daemon-methods.ts";
import { openRpcDocument } from "../../../protocol/openrpc.ts";
import { PROTOCOL_VERSION } from "../../../protocol/wire.ts";
import type { Covers } from "../../core/session-scope.ts";
import { keptFor } from "../../lib/kept-for.ts";
import type { Feed } from "../../log/feed.ts";
import type { Registry } from "../../session/registry.ts";
import { keepText } from "../answer-text.ts";
import type { HandlersOf } from "../call.ts";
import { peerOf } from "./peer.ts";
import { readiness } from "./readiness.ts";

export interface DaemonFacts {
  readonly version: string;
  readonly startedAt: number;
  readonly stateDir: string;
  readonly pi: PiInfo;
  readonly connections: () => number;
  readonly store: () => StoreInfo;
  readonly lostLogLines: () => number;
  readonly feed: Feed;
}

export function daemonHandlers(facts: DaemonFacts, registry: Registry): HandlersOf<typeof daemonMethods> {
  let document: { openrpc: string } | undefined;
  return {
    "daemon/info": (_params, { grant }) => daemonInfo(facts, registry, grant?.limits),
    "daemon/ready": () => readiness(facts),
    "daemon/subscribe": ({ after, epoch }, call) => {
      const peer = peerOf(call);
      const covers = call.grant?.limits;
      if (after !== undefined) {
        return facts.feed.follow(peer, { after, epoch, covers, whenAnswered: call.whenAnswered?.bind(call) });
      }
      registry.watch.add(peer, covers);
      return {};
    },
    "daemon/unsubscribe": (_params, call) => {
      const { id } = peerOf(call);
      const [watched, followed] = [registry.watch.remove(id), facts.feed.unfollow(id)];
      return { wasSubscribed: watched || followed };
    },
    "rpc.discover": () => {
      document ??= keepText(openRpcDocument(facts.version) as { openrpc: string });
      return document;
    },
  };
}

/** The system is not asked more often. */
const residentBytes = keptFor(1_000, () => process.memoryUsage.rss());

/** With what belongs to no session, and of sessions with those that `covers` knows. */
function daemonInfo(facts: DaemonFacts, registry: Registry, covers: Covers | undefined): DaemonInfo {
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
    stateDir: facts.stateDir,
    pi: { path, version, source, capabilities },
    sessions,
    warmChildren: registry.children.warm,
    connections: facts.connections(),
    residentBytes: residentBytes(),
    // What was damaged names sessions.
    store: covers === undefined ? store : { ...store, damaged: [] },
    feed: facts.feed.place,
  };
}
