import { WireError } from "../../../protocol/errors.ts";
import type { SessionInfo } from "../../../protocol/session.ts";
import type { sessionFileMethods } from "../../../protocol/session-file-methods.ts";
import { requireFile } from "../../custody/ephemeral.ts";
import type { DeliveryTracker } from "../../delivery/tracker.ts";
import type { Registry } from "../../session/registry.ts";
import type { Session } from "../../session/session.ts";
import type { Call, HandlersOf } from "../call.ts";
import { callerOf } from "./context.ts";

export function sessionFileHandlers(
  registry: Registry,
  tracker: DeliveryTracker,
): HandlersOf<typeof sessionFileMethods> {
  return {
    "session/open": async ({ environment, mcpServers, anywhere, from: fromId, viewer, ...params }, call) => {
      const { covers, mayReadAny } = callerOf(call);
      const mayOpenAny = anywhere === true && mayReadAny;
      const given = registry.secretsOf({ environment, mcpServers });
      const from = fromId === undefined ? undefined : registry.get(fromId);
      const opener = { covers, mayOpenAny, subscriberId: call.peer?.id, by: call.by, ...given, from, viewer };
      const open = async (): Promise<SessionInfo> => (await registry.files.open(params, opener)).info();
      return from === undefined ? await open() : await from.attribution.acting(call.by, open);
    },
    "session/fork": async ({ sessionId, entryId, abortRun }, call) => {
      const from = requireFile(registry.get(sessionId));
      if (abortRun === true) await abortOwnRun(from, call);
      const { session, text } = await from.attribution.acting(call.by, () => registry.files.fork(sessionId, entryId));
      return { session: session.info(), ...(text === undefined ? {} : { text }) };
    },
    "session/clone": async ({ sessionId, abortRun }, call) => {
      const from = requireFile(registry.get(sessionId));
      if (abortRun === true) await abortOwnRun(from, call);
      const { session } = await from.attribution.acting(call.by, () => registry.files.clone(sessionId));
      return { session: session.info() };
    },
    "session/startNew": async ({ sessionId, parentSession, abortRun }, call) => {
      const from = requireFile(registry.get(sessionId));
      requireAlone(from, call);
      if (abortRun === true) await abortOwnRun(from, call);
      const start = () => registry.files.startNew(sessionId, parentSession);
      const { session } = await from.attribution.acting(call.by, start);
      return { session: session.info() };
    },
    "session/reload": async ({ sessionId }, { by }) => {
      const session = requireFile(registry.get(sessionId));
      await session.attribution.acting(by, () => session.reload());
      return session.info();
    },
    "session/delete": async ({ sessionId, ifAlone }, call) => {
      const session = registry.get(sessionId);
      if (ifAlone === true) requireAlone(session, call);
      const underWay = tracker.underWay(sessionId);
      const exit = await session.attribution.acting(call.by, () => registry.files.delete(sessionId));
      return { ...(exit === undefined ? {} : { exit }), deliveries: await tracker.effects(underWay) };
    },
  };
}

/** Throws `session_busy` if other connections follow the session. */
export function requireAlone({ journal }: Session, { peer }: Call): void {
  if (!journal.subscriptions.hasOthers(peer?.id)) return;
  throw new WireError("session_busy", "Other connections follow the session.", { reason: "shared" });
}

/** Aborts the run, if there is one. Throws `session_busy` if other connections follow the session: the run may be theirs. */
async function abortOwnRun(session: Session, call: Call): Promise<void> {
  if (session.runId === undefined && session.state.kind !== "running") return;
  requireAlone(session, call);
  await session.prompting.abort({ by: call.by, signal: call.signal });
}
