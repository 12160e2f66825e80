import type { sessionFileMethods } from "../../../protocol/session-file-methods.ts";
import { requireFile } from "../../custody/ephemeral.ts";
import type { DeliveryTracker } from "../../delivery/tracker.ts";
import type { Registry } from "../../session/registry.ts";
import type { HandlersOf } from "../call.ts";

export function sessionFileHandlers(
  registry: Registry,
  tracker: DeliveryTracker,
): HandlersOf<typeof sessionFileMethods> {
  return {
    "session/open": async (params, { grant }) => (await registry.files.open(params, grant?.limits)).info(),
    "session/fork": async ({ sessionId, entryId }, { by }) => {
      const { session, text } = await requireFile(registry.get(sessionId)).attribution.acting(by, () =>
        registry.files.fork(sessionId, entryId),
      );
      return { session: session.info(), ...(text === undefined ? {} : { text }) };
    },
    "session/clone": async ({ sessionId }, { by }) => {
      const { session } = await requireFile(registry.get(sessionId)).attribution.acting(by, () =>
        registry.files.clone(sessionId),
      );
      return { session: session.info() };
    },
    "session/reload": async ({ sessionId }, { by }) => {
      const session = requireFile(registry.get(sessionId));
      await session.attribution.acting(by, () => session.reload());
      return session.info();
    },
    "session/delete": async ({ sessionId }, { by }) => {
      const underWay = tracker.underWay(sessionId);
      const exit = await registry.get(sessionId).attribution.acting(by, () => registry.files.delete(sessionId));
      return { ...(exit === undefined ? {} : { exit }), deliveries: await tracker.effects(underWay) };
    },
  };
}
