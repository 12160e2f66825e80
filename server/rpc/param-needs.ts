import type { Capability } from "../../protocol/capability.ts";
import type { MethodRow } from "../../protocol/method-row.ts";
import { type MethodName, methods } from "../../protocol/methods.ts";

/** What a call's params need beside what its method needs. */
export function paramNeeds(method: MethodName, params: Readonly<Record<string, unknown>>): readonly Capability[] {
  const { needs = [] } = methods[method] as MethodRow;
  return needs
    .filter(({ param, value }) =>
      valuesAt(params, param.split(".")).some((given) => isAskedFor(given) && (value === undefined || given === value)),
    )
    .map((need) => need.capability);
}

/** What stands at a path of keys; `name[]` stands for each entry of a list. */
function valuesAt(value: unknown, [key, ...further]: readonly string[]): readonly unknown[] {
  if (key === undefined) return [value];
  const name = key.replace(/\[\]$/, "");
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) return [];
  const found = (value as Readonly<Record<string, unknown>>)[name];
  if (name === key) return valuesAt(found, further);
  return Array.isArray(found) ? found.flatMap((entry) => valuesAt(entry, further)) : [];
}

function isAskedFor(value: unknown): boolean {
  return value !== undefined && value !== null && value !== false;
}
