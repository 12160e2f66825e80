import type { Control } from "../../protocol/control.ts";
import type { ChildExit, ModelRef, SessionInfo, SessionSummary } from "../../protocol/session.ts";
import { factsOf } from "../core/session-record.ts";
import type { ChildEnvironment } from "../pi/child-environment.ts";
import type { ChildMcpServers } from "../pi/child-mcp-servers.ts";
import type { StoredSession } from "../store/stored-session.ts";

/** All that a row depends on. Each value is immutable: what changes is another value. */
export interface RowSources {
  readonly stored: StoredSession;
  readonly model: ModelRef | undefined;
  readonly thinkingLevel: string | undefined;
  /** Undefined: unknown. */
  readonly environment: ChildEnvironment | undefined;
  readonly mcpServers: ChildMcpServers;
  readonly isLost: boolean;
  readonly state: SessionInfo["state"];
  readonly pid: number | undefined;
  readonly restoredAt: number | undefined;
  readonly runId: string | undefined;
  readonly exit: ChildExit | undefined;
  readonly idleAfterMs: number;
  readonly restarts: SessionInfo["restarts"];
  readonly silentSince: number | undefined;
  readonly cursor: number;
  readonly epoch: string;
  readonly pendingDeliveries: number;
  /** Undefined: every client may act, and no client has control. */
  readonly control: Control | undefined;
  readonly pendingDialogs: Readonly<SessionInfo["pendingDialogs"]>;
  readonly lostPrompts: Readonly<SessionInfo["lostPrompts"]>;
  readonly summary: SessionSummary | undefined;
}

/** A session as clients see it at one moment. It never changes, so its JSON is written at most once. */
export class SessionRow {
  readonly info: SessionInfo;
  readonly #sources: RowSources;
  #text: string | undefined;

  constructor(sources: RowSources) {
    this.#sources = sources;
    this.info = Object.freeze(infoOf(sources));
  }

  /** The JSON of {@link info}. */
  get text(): string {
    this.#text ??= JSON.stringify(this.info);
    return this.#text;
  }

  /** Whether a row of these sources would be the same. */
  isOf(sources: RowSources): boolean {
    const own = this.#sources;
    for (const name in sources) {
      if (own[name as keyof RowSources] !== sources[name as keyof RowSources]) return false;
    }
    return true;
  }
}

/** Reads nothing but its sources, because a row is used again as long as they are the same. */
function infoOf(sources: RowSources): SessionInfo {
  const { isLost, pid, restoredAt, runId, restarts, silentSince, control, exit, summary } = sources;
  const { environment, mcpServers } = sources;
  return {
    ...factsOf(sources),
    ...(environment === undefined
      ? {}
      : { environment: { from: environment.from, fingerprint: environment.fingerprint } }),
    ...(mcpServers.isEmpty ? {} : { mcpServers: [...mcpServers.names] }),
    ...(isLost ? { ephemeral: "lost" as const } : {}),
    state: sources.state,
    ...(pid === undefined ? {} : { pid }),
    ...(restoredAt === undefined ? {} : { restoredAt }),
    ...(runId === undefined ? {} : { runId }),
    idleAfterMs: sources.idleAfterMs,
    ...(restarts === undefined ? {} : { restarts }),
    ...(silentSince === undefined ? {} : { unresponsive: { since: silentSince } }),
    cursor: sources.cursor,
    epoch: sources.epoch,
    pendingDeliveries: sources.pendingDeliveries,
    ...(control === undefined ? {} : { control }),
    pendingDialogs: [...sources.pendingDialogs],
    lostPrompts: [...sources.lostPrompts],
    ...(exit === undefined ? {} : { exit }),
    ...(summary === undefined ? {} : { summary }),
  };
}
