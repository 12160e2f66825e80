import type { MethodRow } from "../../protocol/method-row.ts";
import { isMethodName, type MethodName, methods } from "../../protocol/methods.ts";
import type { Bound, Policy } from "../../server/rpc/call.ts";
import type { SessionOf } from "../../server/rpc/governance.ts";

/** Every row of the method table. */
export const rows: readonly (readonly [MethodName, MethodRow])[] = Object.keys(methods)
  .filter(isMethodName)
  .map((name) => [name, methods[name]]);

/** The names of a row's params. */
export function paramNames({ params }: MethodRow): readonly string[] {
  return Object.keys((params as { readonly properties?: object }).properties ?? {});
}

/** One method with a policy around this handler. */
export function under<P extends object>(policy: Policy, name: MethodName, handler: Bound<P>): Bound<P> {
  return policy({ name, row: methods[name] }, handler);
}

/** The session of every id, by one function. */
export function sessionsBy(of: (id: string) => string | undefined): SessionOf {
  return { session: of, delivery: of, dialog: of, prompt: of };
}
