import type { Static } from "typebox";
import { commandMethods } from "./command-methods.ts";
import { contextMethods } from "./context-methods.ts";
import { controlMethods } from "./control-methods.ts";
import { costMethods } from "./cost-methods.ts";
import { daemonMethods } from "./daemon-methods.ts";
import { deliveryMethods } from "./delivery-methods.ts";
import { dialogMethods } from "./dialog-methods.ts";
import { logMethods } from "./log-methods.ts";
import type { MethodRow } from "./method-row.ts";
import { metricsMethods } from "./metrics-methods.ts";
import { modelMethods } from "./model-methods.ts";
import { optimisationMethods } from "./optimisation-methods.ts";
import { promptMethods } from "./prompt-methods.ts";
import { pruningMethods } from "./pruning-methods.ts";
import { requestMethods } from "./request-methods.ts";
import { sessionFileMethods } from "./session-file-methods.ts";
import { sessionMethods } from "./session-methods.ts";
import { settingsMethods } from "./settings-methods.ts";
import { subscriptionMethods } from "./subscription-methods.ts";
import { tokenMethods } from "./token-methods.ts";
import { transcriptMethods } from "./transcript-methods.ts";
import { webMethods } from "./web-methods.ts";

/**
 * Every method, once. Types, validation, OpenRPC and the typed client derive from this table;
 * a row without a handler does not compile.
 */
export const methods = {
  ...daemonMethods,
  ...metricsMethods,
  ...logMethods,
  ...sessionMethods,
  ...sessionFileMethods,
  ...subscriptionMethods,
  ...promptMethods,
  ...controlMethods,
  ...commandMethods,
  ...transcriptMethods,
  ...modelMethods,
  ...settingsMethods,
  ...deliveryMethods,
  ...dialogMethods,
  ...tokenMethods,
  ...webMethods,
  ...contextMethods,
  ...optimisationMethods,
  ...costMethods,
  ...requestMethods,
  ...pruningMethods,
} as const satisfies Readonly<Record<string, MethodRow>>;

export type MethodName = keyof typeof methods;
export type Params<M extends MethodName> = Static<(typeof methods)[M]["params"]>;
export type Result<M extends MethodName> = Static<(typeof methods)[M]["result"]>;

/** Whether a string names a method. Own properties only: `constructor` is not a method. */
export function isMethodName(name: string): name is MethodName {
  return Object.hasOwn(methods, name);
}
