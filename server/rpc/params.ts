import type { Capability } from "../../protocol/capability.ts";
import type { MethodRow, ParamNeed } from "../../protocol/method-row.ts";

// How policies read the params of a call, by the facts of its method's row.

/** The value of a param. Undefined: it is not given. */
export function paramOf(params: object, name: string): unknown {
  return Object.hasOwn(params, name) ? Reflect.get(params, name) : undefined;
}

/** Whether a param asks for something: `false` and null turn something off. */
export function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null && value !== false;
}

/** The capabilities that a call's params need in addition to that of its method. */
export function paramNeeds(row: Pick<MethodRow, "needs">, params: object): readonly Capability[] {
  return needsOf(row, params).map((need) => need.capability);
}

/** The first param of a call that is accepted only over the Unix socket. */
export function localParam(row: Pick<MethodRow, "needs">, params: object): string | undefined {
  return needsOf(row, params).find(({ isLocal }) => isLocal === true)?.param;
}

/** A copy of a call's params without those that are never stored. */
export function storable(params: object, unstored: readonly string[]): object {
  return Object.fromEntries(Object.entries(params).filter(([name]) => !unstored.includes(name)));
}

function needsOf({ needs = [] }: Pick<MethodRow, "needs">, params: object): readonly ParamNeed[] {
  return needs.filter(({ param, value }) =>
    valuesAt(params, param.split(".")).some((given) => isGiven(given) && (value === undefined || given === value)),
  );
}

/** The type of the pi command that a call sends. Undefined: its method sends none. */
export function commandType({ sendsCommand }: MethodRow, params: object): string | undefined {
  const command = sendsCommand === undefined ? undefined : paramOf(params, sendsCommand);
  const type = typeof command === "object" && command !== null ? paramOf(command, "type") : undefined;
  return typeof type === "string" ? type : undefined;
}

/** Whether a call sends a pi command that changes nothing, which its name says. */
export function sendsQuery(row: MethodRow, params: object): boolean {
  return commandType(row, params)?.startsWith("get_") === true;
}

/** The values at a path of keys. `name[]` is each entry of a list. */
function valuesAt(value: unknown, [key, ...further]: readonly string[]): readonly unknown[] {
  if (key === undefined) return [value];
  if (typeof value !== "object" || value === null) return [];
  const name = key.replace(/\[\]$/, "");
  const found = paramOf(value, name);
  if (name === key) return found === undefined ? [] : valuesAt(found, further);
  return Array.isArray(found) ? found.flatMap((entry) => valuesAt(entry, further)) : [];
}
