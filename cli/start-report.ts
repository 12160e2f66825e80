import type { DaemonFile } from "../protocol/daemon-file.ts";
import type { ErrorReport } from "./errors.ts";

/** The daemon's addresses. The token stays in its file. */
export type DaemonAddress = Pick<
  DaemonFile,
  "pid" | "version" | "url" | "socketPath" | "tlsUrl" | "tlsNotBefore" | "tlsNotAfter"
>;

/** The report of a starting daemon to its parent process, over Node's IPC channel. */
export type StartReport =
  | { readonly kind: "listening"; readonly address: DaemonAddress }
  | { readonly kind: "failed"; readonly error: ErrorReport };

/** Reports to the parent process, if there is one, and resolves when the report was sent. */
export async function reportToStarter(report: StartReport): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  if (process.send === undefined || !process.connected) return;
  // The parent process may have ended; the error is ignored.
  process.send({ piRpcdStart: report }, undefined, {}, () => resolve());
  await promise;
}

export function startReport(message: unknown): StartReport | undefined {
  if (typeof message !== "object" || message === null || !("piRpcdStart" in message)) return undefined;
  return message.piRpcdStart as StartReport;
}
