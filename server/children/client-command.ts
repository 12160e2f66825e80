import { WireError } from "../../protocol/errors.ts";
import { methods } from "../../protocol/methods.ts";
import { commandRoute } from "../../protocol/pi-commands.ts";
import type { Validator } from "../../protocol/validation.ts";
import { changesState, knownValues, type PiCommand, requiredFields } from "../pi/records.ts";

/** Refuses commands that would bypass the daemon, change other sessions without consent, or make pi throw. */
export function checkCommand(command: PiCommand, confirmShared: boolean): void {
  const { type } = command;
  const route = commandRoute(type);
  if (route?.asItIs === false) {
    throw new WireError(
      "forbidden",
      `"${type}" cannot be sent directly, because the daemon must track it (${route.method}).`,
      { command: type },
    );
  }
  if ("id" in command) throw invalid("/command/id", "is not allowed", "The daemon gives a command its id.");
  if (route?.setting !== undefined) requireConfirmation(type, route.setting, confirmShared);
  for (const [field, expected] of Object.entries(requiredFields.get(type) ?? {})) {
    if (typeof command[field] !== expected) {
      throw invalid(`/command/${field}`, `must be a ${expected}`, `pi's "${type}" needs ${field}, a ${expected}.`);
    }
  }
  const known = knownValues.get(type);
  if (known !== undefined && !known.values.includes(command[known.field] as string)) {
    const values = known.values.join(", ");
    throw invalid(`/command/${known.field}`, `must be one of ${values}`, `pi's "${type}" knows only ${values}.`);
  }
}

/** Whether a command changes fields of the session's state. */
export function changesSession(type: string): boolean {
  return changesState.has(type) || type === "set_session_name";
}

/** Throws `forbidden` unless the caller confirms that other sessions are changed too. */
export function requireConfirmation(command: string, setting: string, confirmShared: boolean): void {
  if (confirmShared) return;
  throw new WireError(
    "forbidden",
    `"${command}" rewrites ${setting} in the user's shared pi settings, for all sessions. Set confirmShared: true to allow it.`,
    { command, setting },
  );
}

function invalid(path: string, finding: string, why: string): WireError {
  return new WireError("invalid_params", why, { findings: [{ path, message: finding }] });
}

interface ObjectSchema {
  readonly type: "object";
  readonly properties: Readonly<Record<string, object>>;
  readonly required: readonly string[];
}

/** Params of methods that are not fields of pi's command. */
const daemonsOwn: ReadonlySet<string> = new Set(["sessionId", "idempotencyKey", "confirmShared", "cached"]);

/** By command type: each schema is created once, because validators are cached by identity. */
const schemas = new Map<string, ObjectSchema>();

/**
 * Validates a command's fields by the params of the same names in the corresponding method. Unknown fields are left
 * to pi, which may be newer. Throws `invalid_params`.
 */
export function checkFields(command: PiCommand, validator: Validator): void {
  const { type } = command;
  const schema = commandSchema(type);
  if (schema === undefined) return;
  const findings = validator.schema(schema, command).map(({ path, message }) => ({ path: `/command${path}`, message }));
  if (findings.length === 0) return;
  const list = findings.map(({ path, message }) => `${path} ${message}`).join("; ");
  throw new WireError("invalid_params", `The fields of pi's "${type}" are wrong: ${list}.`, { findings });
}

/** The schema of the fields that a method's params have too. */
export function commandSchema(type: string): ObjectSchema | undefined {
  const known = schemas.get(type);
  if (known !== undefined) return known;
  const route = commandRoute(type);
  if (route?.asItIs !== true) return undefined;
  const { properties = {}, required = [] } = methods[route.method].params as Partial<ObjectSchema>;
  const isPis = (name: string): boolean => !daemonsOwn.has(name);
  const schema: ObjectSchema = {
    type: "object",
    properties: Object.fromEntries(Object.entries(properties).filter(([name]) => isPis(name))),
    required: required.filter(isPis),
  };
  schemas.set(type, schema);
  return schema;
}
