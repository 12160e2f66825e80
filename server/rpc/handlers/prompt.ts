import type { Params } from "../../../protocol/methods.ts";
import type { promptMethods } from "../../../protocol/prompt-methods.ts";
import type { IfRunning } from "../../../protocol/session.ts";
import type { DeliveryTracker } from "../../delivery/tracker.ts";
import type { Registry } from "../../session/registry.ts";
import type { Call, HandlersOf } from "../call.ts";

export function promptHandlers(registry: Registry, tracker: DeliveryTracker): HandlersOf<typeof promptMethods> {
  const prompt = ({ sessionId, text, images }: Params<"session/steer">, ifRunning: IfRunning, { signal }: Call) =>
    registry.get(sessionId).prompting.prompt({ text, images, ifRunning, signal });

  return {
    "session/prompt": (params, call) => prompt(params, params.ifRunning ?? "refuse", call),
    "session/steer": (params, call) => prompt(params, "steer", call),
    "session/followUp": (params, call) => prompt(params, "followUp", call),
    "session/abort": async ({ sessionId }) => {
      const session = registry.get(sessionId);
      const underWay = tracker.underWay(sessionId);
      return { aborted: await session.prompting.abort(), deliveries: tracker.effects(underWay) };
    },
    "session/clearQueue": async ({ sessionId }) => {
      const underWay = tracker.underWay(sessionId);
      const { prompting, pushing } = registry.get(sessionId);
      const cleared = await prompting.clearQueue();
      await pushing.clear();
      return { ...cleared, deliveries: tracker.effects(underWay) };
    },
  };
}
