import { realpath } from "node:fs/promises";
import type { Params, Result } from "../../../protocol/methods.ts";
import type { sessionMethods } from "../../../protocol/session-methods.ts";
import type { DeliveryTracker } from "../../delivery/tracker.ts";
import type { Registry } from "../../session/registry.ts";
import { sessionPage } from "../../session/session-page.ts";
import type { Covers } from "../../session/session-scope.ts";
import type { HandlersOf } from "../call.ts";

export function sessionHandlers(registry: Registry, tracker: DeliveryTracker): HandlersOf<typeof sessionMethods> {
  return {
    "session/create": async (params, { subject, grant }) => {
      if (grant?.isLimited !== true) return (await registry.create(params, subject?.id)).info();
      const { labels, promptTemplates } = params;
      const limited = {
        ...params,
        ...grant.labelled(labels),
        ...(promptTemplates !== undefined && { promptTemplates: await grant.inside(promptTemplates) }),
      };
      const session = await registry.create(limited, subject?.id, (scope) => grant.requireInside(scope));
      return session.info();
    },
    "session/list": (params, { grant }) =>
      params.cwd === undefined && params.stored !== true
        ? sessionPage(registry, params, grant?.limits)
        : listWithFiles(registry, params, grant?.limits),
    "session/get": ({ sessionId }) => registry.get(sessionId).info(),
    "session/hibernate": async ({ sessionId, force = false }) => {
      const session = registry.get(sessionId);
      await session.upkeep.hibernate(force);
      return session.info();
    },
    "session/close": async ({ sessionId }, { by }) => {
      const underWay = tracker.underWay(sessionId);
      const exit = await registry.get(sessionId).attribution.acting(by, () => registry.close(sessionId));
      return { ...(exit === undefined ? {} : { exit }), deliveries: await tracker.effects(underWay) };
    },
  };
}

/** The same with what has to be looked for on disk. */
async function listWithFiles(
  registry: Registry,
  { cwd: given, stored, storedAfter, storedLimit, ...params }: Params<"session/list">,
  covers: Covers | undefined,
): Promise<Result<"session/list">> {
  const cwd = given === undefined ? undefined : await realpath(given).catch(() => given);
  const listed = sessionPage(registry, cwd === undefined ? params : { ...params, cwd }, covers);
  if (stored !== true) return listed;
  const { next, ...page } = await registry.files.stored({ cwd, after: storedAfter, limit: storedLimit, covers });
  return { ...listed, stored: { sessions: [...page.sessions], ...(next === undefined ? {} : { next }) } };
}
