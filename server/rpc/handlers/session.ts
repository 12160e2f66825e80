import { realpath } from "node:fs/promises";
import type { sessionMethods } from "../../../protocol/session-methods.ts";
import type { DeliveryTracker } from "../../delivery/tracker.ts";
import type { Registry } from "../../session/registry.ts";
import type { HandlersOf } from "../call.ts";

export function sessionHandlers(registry: Registry, tracker: DeliveryTracker): HandlersOf<typeof sessionMethods> {
  return {
    "session/create": async (params, { subject }) => (await registry.create(params, subject?.id)).info(),
    "session/list": async ({ cwd, stored, storedAfter, storedLimit }) => {
      // Sessions know their directory without links.
      const wanted = cwd === undefined ? undefined : await realpath(cwd).catch(() => cwd);
      const sessions = registry.all().filter((session) => wanted === undefined || session.cwd === wanted);
      const listed = { sessions: sessions.map((session) => session.info()) };
      if (stored !== true) return listed;
      const { next, ...page } = await registry.files.stored({ cwd: wanted, after: storedAfter, limit: storedLimit });
      return { ...listed, stored: { sessions: [...page.sessions], ...(next === undefined ? {} : { next }) } };
    },
    "session/get": ({ sessionId }) => registry.get(sessionId).info(),
    "session/close": async ({ sessionId }, { by }) => {
      const underWay = tracker.underWay(sessionId);
      const exit = await registry.get(sessionId).attribution.acting(by, () => registry.close(sessionId));
      return { ...(exit === undefined ? {} : { exit }), deliveries: await tracker.effects(underWay) };
    },
  };
}
