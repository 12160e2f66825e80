import { realpath } from "node:fs/promises";
import { WireError } from "../../../protocol/errors.ts";
import type { Params } from "../../../protocol/methods.ts";
import type { IfRunning } from "../../../protocol/session.ts";
import type { DeliveryTracker } from "../../delivery/tracker.ts";
import { checkCommand, sendCommand } from "../../session/client-command.ts";
import type { Registry } from "../../session/registry.ts";
import type { Call, Handlers, Peer } from "../call.ts";

type SessionMethods = Extract<keyof Handlers, `session/${string}`>;

export function sessionHandlers(registry: Registry, tracker: DeliveryTracker): Pick<Handlers, SessionMethods> {
  const prompt = ({ sessionId, text, images }: Params<"session/steer">, ifRunning: IfRunning, { signal }: Call) =>
    registry.get(sessionId).prompting.prompt({ text, images, ifRunning, signal });

  return {
    "session/create": async (params) => (await registry.create(params)).info(),
    "session/list": async ({ cwd }) => {
      // Sessions know their directory without links.
      const wanted = cwd === undefined ? undefined : await realpath(cwd).catch(() => cwd);
      const sessions = registry.all().filter((session) => wanted === undefined || session.cwd === wanted);
      return { sessions: sessions.map((session) => session.info()) };
    },
    "session/get": ({ sessionId }) => registry.get(sessionId).info(),
    "session/subscribe": ({ sessionId, after, provider }, call) => {
      const { cursor, gap } = registry.get(sessionId).subscribe(peerOf(call), after, provider);
      return { cursor, ...(gap === undefined ? {} : { gap }) };
    },
    "session/unsubscribe": ({ sessionId }, call) => ({
      // A session that was closed meanwhile has no subscriptions.
      wasSubscribed: registry.find(sessionId)?.unsubscribe(peerOf(call).id) ?? false,
    }),
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
    "session/command": async ({ sessionId, command, confirmShared }) => {
      checkCommand(command, confirmShared === true);
      const underWay = tracker.underWay(sessionId);
      const result = await sendCommand(registry.get(sessionId), command);
      return command.type === "compact" ? { ...result, deliveries: tracker.effects(underWay) } : result;
    },
    "session/close": async ({ sessionId }) => {
      const underWay = tracker.underWay(sessionId);
      const exit = await registry.close(sessionId);
      return { ...(exit === undefined ? {} : { exit }), deliveries: tracker.effects(underWay) };
    },
  };
}

function peerOf({ peer }: Call): Peer {
  if (peer === undefined) {
    throw new WireError("invalid_request", "Subscriptions need a connection that stays open: use the WebSocket.");
  }
  return peer;
}
