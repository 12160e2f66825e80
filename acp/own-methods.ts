import type { Capability } from "../protocol/capability.ts";
import { isMethodName, type MethodName, methods } from "../protocol/methods.ts";

/** Before the names of the daemon's methods, as methods of this protocol. */
const prefix = "_pi-rpcd/";

/** These belong to a connection of the daemon's, which the client does not see. */
const hidden: ReadonlySet<string> = new Set([
  "daemon/hello",
  "daemon/subscribe",
  "daemon/unsubscribe",
  "session/subscribe",
  "session/unsubscribe",
]);

/** The daemon's method that a client means. Undefined: it is none, or cannot be called here. */
export function ownMethodIn(method: string): MethodName | undefined {
  const name = method.startsWith(prefix) ? method.slice(prefix.length) : "";
  return isMethodName(name) && isOffered(name) ? name : undefined;
}

/** The names of the daemon's methods that a client with these capabilities can call. */
export function ownMethods(capabilities: readonly Capability[]): readonly MethodName[] {
  const isAllowed = (needed: Capability | "any"): boolean =>
    needed === "any" || capabilities.includes("admin") || capabilities.includes(needed);
  return Object.entries(methods).flatMap(([name, { capability }]) =>
    isMethodName(name) && isOffered(name) && isAllowed(capability) ? [name] : [],
  );
}

function isOffered(name: MethodName): boolean {
  return name.includes("/") && !hidden.has(name);
}
