import type { sessionFileMethods } from "../../../protocol/session-file-methods.ts";
import type { DeliveryTracker } from "../../delivery/tracker.ts";
import type { Registry } from "../../session/registry.ts";
import type { HandlersOf } from "../call.ts";

export function sessionFileHandlers(
  registry: Registry,
  tracker: DeliveryTracker,
): HandlersOf<typeof sessionFileMethods> {
  return {
    "session/open": async (params) => (await registry.files.open(params)).info(),
    "session/fork": async ({ sessionId, entryId }) => {
      const { session, text } = await registry.files.fork(sessionId, entryId);
      return { session: session.info(), ...(text === undefined ? {} : { text }) };
    },
    "session/clone": async ({ sessionId }) => ({ session: (await registry.files.clone(sessionId)).session.info() }),
    "session/reload": async ({ sessionId }) => {
      const session = registry.get(sessionId);
      await session.reload();
      return session.info();
    },
    "session/delete": async ({ sessionId }) => {
      const underWay = tracker.underWay(sessionId);
      const exit = await registry.files.delete(sessionId);
      return { ...(exit === undefined ? {} : { exit }), deliveries: tracker.effects(underWay) };
    },
  };
}
