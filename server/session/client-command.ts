import { WireError } from "../../protocol/errors.ts";
import {
  daemonOnlyCommands,
  isRecordObject,
  type PiCommand,
  requiredFields,
  sharedSettingsCommands,
} from "../pi/records.ts";
import { refused } from "./prompting.ts";
import type { Session } from "./session.ts";

/** After these pi says something else of its model, thinking level or name. */
const changesState: ReadonlySet<string> = new Set([
  "set_model",
  "cycle_model",
  "set_thinking_level",
  "cycle_thinking_level",
]);

/** Refuses what would pass the daemon by, change other sessions unasked, or make pi throw inside. */
export function checkCommand(command: PiCommand, confirmShared: boolean): void {
  const instead = daemonOnlyCommands.get(command.type);
  if (instead !== undefined) {
    throw new WireError(
      "forbidden",
      `"${command.type}" cannot be sent as it is, since the daemon must know of it (${instead}).`,
      {
        command: command.type,
      },
    );
  }
  if ("id" in command)
    throw new WireError(
      "invalid_params",
      "The daemon gives a command its id.",
      findings("/command/id", "is not allowed"),
    );
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
      throw new WireError(
        "invalid_params",
        `pi's "${command.type}" needs ${field}, a ${type}.`,
        findings(`/command/${field}`, `must be a ${type}`),
      );
    }
  }
}

/** Whether a command changes what the session says of itself. */
export function changesSession({ type }: PiCommand): boolean {
  return changesState.has(type) || type === "set_session_name";
}

/** Sends a command that was checked, and gives pi's data. */
export async function sendCommand(session: Session, command: PiCommand): Promise<{ data?: unknown }> {
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
  return {
    ...data,
    commands: data["commands"].filter((command) => !isRecordObject(command) || command["name"] !== name),
  };
}

function findings(path: string, message: string): Record<string, unknown> {
  return { findings: [{ path, message }] };
}
