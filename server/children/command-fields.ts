import { WireError } from "../../protocol/errors.ts";
import { methods } from "../../protocol/methods.ts";
import { commandRoute } from "../../protocol/pi-commands.ts";
import type { Validator } from "../../protocol/validation.ts";
import type { PiCommand } from "../pi/records.ts";

interface ObjectSchema {
  readonly type: "object";
  readonly properties: Readonly<Record<string, object>>;
  readonly required: readonly string[];
}

/** Params of methods that are not fields of pi's command. */
const daemonsOwn: ReadonlySet<string> = new Set(["sessionId", "idempotencyKey", "confirmShared"]);

/** By command type: each schema is created once, because validators are cached by identity. */
const schemas = new Map<string, ObjectSchema>();

/**
 * Validates a command's fields by the params of the same names in the corresponding method. Unknown fields are left
 * to pi, which may be newer. Throws `invalid_params`.
 */
export function checkFields(command: PiCommand, validator: Validator): void {
  const { type } = command;
  const schema = schemaOf(type);
  if (schema === undefined) return;
  const findings = validator.schema(schema, command).map(({ path, message }) => ({ path: `/command${path}`, message }));
  if (findings.length === 0) return;
  const list = findings.map(({ path, message }) => `${path} ${message}`).join("; ");
  throw new WireError("invalid_params", `The fields of pi's "${type}" are wrong: ${list}.`, { findings });
}

function schemaOf(type: string): ObjectSchema | undefined {
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
