import { WireError } from "../../../protocol/errors.ts";
import type { Params } from "../../../protocol/methods.ts";
import type { IfRunning } from "../../../protocol/session.ts";
import { daemonOnlyCommands, isRecordObject, type PiCommand, requiredFields, sharedSettingsCommands } from "../../pi/records.ts";
import { refused } from "../../session/prompting.ts";
import type { Registry } from "../../session/registry.ts";
import type { Session } from "../../session/session.ts";
import type { Call, Handlers, Peer } from "../call.ts";

type SessionMethods = Extract<keyof Handlers, `session/${string}`>;

/** After these pi says something else of its model, thinking level or name. */
const changesState: ReadonlySet<string> = new Set(["set_model", "cycle_model", "set_thinking_level", "cycle_thinking_level"]);

export function sessionHandlers(registry: Registry): Pick<Handlers, SessionMethods> {
  const prompt = (params: Params<"session/steer">, ifRunning: IfRunning) =>
    registry.get(params.sessionId).prompting.prompt({ text: params.text, images: params.images, ifRunning });

  return {
    "session/create": async (params) => (await registry.create(params)).info(),
    "session/list": ({ cwd }) => ({
      sessions: registry
        .all()
        .filter((session) => cwd === undefined || session.cwd === cwd)
        .map((session) => session.info()),
    }),
    "session/get": ({ sessionId }) => registry.get(sessionId).info(),
    "session/subscribe": ({ sessionId, after }, call) => {
      const { cursor, gap } = registry.get(sessionId).subscribe(peerOf(call), after);
      return { cursor, ...(gap === undefined ? {} : { gap }) };
    },
    "session/unsubscribe": ({ sessionId }, call) => {
      registry.get(sessionId).unsubscribe(peerOf(call).id);
      return { subscribed: false };
    },
    "session/prompt": (params) => prompt(params, params.ifRunning ?? "refuse"),
    "session/steer": (params) => prompt(params, "steer"),
    "session/followUp": (params) => prompt(params, "followUp"),
    "session/abort": async ({ sessionId }) => ({ aborted: await registry.get(sessionId).prompting.abort() }),
    "session/command": async ({ sessionId, command, confirmShared }) => {
      checkCommand(command, confirmShared === true);
      return await sendCommand(registry.get(sessionId), command);
    },
    "session/close": async ({ sessionId }) => {
      const exit = await registry.close(sessionId);
      return exit === undefined ? {} : { exit };
    },
  };
}

function peerOf({ peer }: Call): Peer {
  if (peer === undefined) {
    throw new WireError("invalid_request", "Subscriptions need a connection that stays open: use the WebSocket.");
  }
  return peer;
}

/** Refuses what would pass the daemon by, change other sessions unasked, or make pi throw inside. */
function checkCommand(command: PiCommand, confirmShared: boolean): void {
  const instead = daemonOnlyCommands.get(command.type);
  if (instead !== undefined) {
    throw new WireError("forbidden", `"${command.type}" cannot be sent as it is, since the daemon must know of it (${instead}).`, {
      command: command.type,
    });
  }
  if ("id" in command) throw new WireError("invalid_params", "The daemon gives a command its id.", findings("/command/id", "is not allowed"));
  const setting = sharedSettingsCommands.get(command.type);
  if (setting !== undefined && !confirmShared) {
    throw new WireError(
      "forbidden",
      `"${command.type}" rewrites ${setting} in the user's shared pi settings, for all sessions. Say confirmShared: true to do so.`,
      { command: command.type, setting },
    );
  }
  for (const [field, type] of Object.entries(requiredFields.get(command.type) ?? {})) {
    if (typeof command[field] !== type) {
      throw new WireError("invalid_params", `pi's "${command.type}" needs ${field}, a ${type}.`, findings(`/command/${field}`, `must be a ${type}`));
    }
  }
}

async function sendCommand(session: Session, command: PiCommand): Promise<{ data?: unknown }> {
  const child = await session.awake();
  const response = await child.send(command);
  if (!response.success) {
    if (response.error?.startsWith("Unknown command") === true) {
      throw new WireError("unsupported_by_pi", `This pi has no command "${command.type}".`, { command: command.type });
    }
    throw refused(command.type, response);
  }
  if (changesState.has(command.type)) await session.refresh(child);
  if (response.data === undefined) return {};
  return { data: command.type === "get_commands" ? withoutLink(response.data, child.link.command) : response.data };
}

/** The helper's own command is nobody else's: its name would let a client write frames. */
function withoutLink(data: unknown, name: string | undefined): unknown {
  if (!isRecordObject(data) || !Array.isArray(data["commands"])) return data;
  return { ...data, commands: data["commands"].filter((command) => !isRecordObject(command) || command["name"] !== name) };
}

function findings(path: string, message: string): Record<string, unknown> {
  return { findings: [{ path, message }] };
}
