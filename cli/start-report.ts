import type { DaemonFile } from "../protocol/daemon-file.ts";
import type { ErrorReport } from "./errors.ts";

/** Where a daemon can be reached. The token stays in its file. */
export type DaemonAddress = Pick<
  DaemonFile,
  "pid" | "version" | "url" | "socketPath" | "tlsUrl" | "tlsNotBefore" | "tlsNotAfter"
>;

/** What a starting daemon tells the process that started it, by Node's channel between the two. */
export type StartReport =
  | { readonly kind: "listening"; readonly address: DaemonAddress }
  | { readonly kind: "failed"; readonly error: ErrorReport };

/** Tells the starter, if there is one, and resolves when that is done. */
export async function tellStarter(report: StartReport): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  if (process.send === undefined || !process.connected) return;
  // A starter that has gone meanwhile has nothing to learn.
  process.send({ piRpcdStart: report }, undefined, {}, () => resolve());
  await promise;
}

export function startReport(message: unknown): StartReport | undefined {
  if (typeof message !== "object" || message === null || !("piRpcdStart" in message)) return undefined;
  return message.piRpcdStart as StartReport;
}
