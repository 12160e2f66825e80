import type { MethodName } from "./methods.ts";

const require = process.getBuiltinModule("node:module").createRequire(import.meta.url);

/** The name of the file with their validators. */
export const quickFile = "quick";

/** The methods of short commands. */
export const quickMethods = ["daemon/info", "session/list"] as const satisfies readonly MethodName[];

/**
 * Whether a result is valid, by a validator of the build that needs no schema: evaluating all schemas takes a short
 * command longer than its call. Accepts additions of later protocol versions. Undefined: no such validator exists.
 */
export function isKnownResult(method: MethodName, result: unknown): boolean | undefined {
  if (!(quickMethods as readonly MethodName[]).includes(method)) return undefined;
  try {
    return (require(`../validators/${quickFile}.cjs`) as Readonly<Record<string, (value: unknown) => boolean>>)[
      method
    ]?.(result);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "MODULE_NOT_FOUND") return undefined;
    throw error;
  }
}
