import type { MethodRow } from "../../protocol/method-row.ts";
import { methods } from "../../protocol/methods.ts";

/** The source of `client/retries.ts`: the client does not load the method table, which is too large for a browser. */
export function retriesText(): string {
  const rows = Object.entries<MethodRow>(methods).map(([name, { retry, key = "idempotencyKey" }]) => {
    return `  "${name}": "${retry === "keyed" ? key : retry}",`;
  });
  return [
    'import type { MethodName } from "../protocol/methods.ts";',
    "",
    "/** What to do with a call whose answer was lost. A param's name: repeat it with the same key in this param. */",
    'export type Retry = "safe" | "never" | "idempotencyKey" | "deliveryId";',
    "",
    "/** The column `retry` of the method table. Written by `npm run schema`; do not edit. */",
    "export const retries: Readonly<Record<MethodName, Retry>> = {",
    ...rows,
    "};",
    "",
  ].join("\n");
}
