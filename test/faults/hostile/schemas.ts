import type fc from "fast-check";
import type { JsonSchema } from "../../../protocol/json-schema.ts";
import { type MethodName, methods } from "../../../protocol/methods.ts";
import { broken, fitting } from "../../helpers/schema-values.ts";

type Params = Record<string, unknown>;

/** Params that a method's schema allows. */
export function goodParams(method: MethodName): fc.Arbitrary<Params> {
  return fitting(methods[method].params as JsonSchema) as fc.Arbitrary<Params>;
}

/** Such params with one change: a value as an attacker would choose it, or a name more or fewer. */
export function brokenParams(method: MethodName): fc.Arbitrary<unknown> {
  return broken(goodParams(method));
}
