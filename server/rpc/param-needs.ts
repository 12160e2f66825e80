import type { Capability } from "../../protocol/capability.ts";
import type { MethodRow } from "../../protocol/method-row.ts";
import { type MethodName, methods } from "../../protocol/methods.ts";

/** What a call's params need beside what its method needs. */
export function paramNeeds(method: MethodName, params: Readonly<Record<string, unknown>>): readonly Capability[] {
  const { needs = [] } = methods[method] as MethodRow;
  return needs
    .filter(({ param, value }) => isAskedFor(params[param]) && (value === undefined || params[param] === value))
    .map((need) => need.capability);
}

function isAskedFor(value: unknown): boolean {
  return value !== undefined && value !== false;
}
