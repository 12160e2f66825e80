import { stateDirectory } from "../client/discovery.ts";
import { certificateProblem } from "../protocol/daemon-file.ts";
import { lackingNote } from "./credentials.ts";
import { type DaemonState, daemonState, whyNotRunning } from "./daemon-state.ts";
import { exitCodes } from "./exit-codes.ts";
import { duration, mebibytes } from "./format.ts";
import type { Invocation } from "./invocation.ts";
import type { Output } from "./output.ts";
import { olderDaemon } from "./version-skew.ts";

/** Shows whether the daemon runs, and its facts. */
export async function status({ options, output, env, signal }: Invocation<"status">): Promise<number> {
  const stateDir = stateDirectory(options["state-dir"], env);
  const found = await daemonState(stateDir, signal);
  if (found.kind !== "running") {
    const message = whyNotRunning(found, stateDir);
    if (output.json) output.document({ running: false, stateDir, reason: found.kind, message });
    else output.print(`${output.paint("yellow", "not running")}  ${message} Start one with: pi-rpcd start`);
    return exitCodes.noDaemon;
  }
  const { url, socketPath, tlsUrl } = found.file;
  if (output.json) output.document({ running: true, ...found.info, url, socketPath, tlsUrl });
  else for (const line of describe(found, output)) output.print(line);
  const invalid = certificateProblem(found.file);
  if (invalid !== undefined) output.note("certificate_invalid", invalid);
  const older = olderDaemon(found.info);
  if (older !== undefined) output.note("daemon_older", older);
  const lacking = lackingNote(found.info, env);
  if (lacking !== undefined) output.note("key_not_in_daemon", lacking);
  return exitCodes.done;
}

function describe({ info, file }: Extract<DaemonState, { kind: "running" }>, output: Output): readonly string[] {
  const sources = {
    option: "from --pi",
    environment: "from PI_RPCD_PI",
    configuration: "from the configuration",
    path: "found on PATH",
    bundled: "bundled",
  } as const;
  const states = Object.entries(info.sessions).filter(([, count]) => count > 0);
  const sessions = states.length === 0 ? "none" : states.map(([state, count]) => `${count} ${state}`).join(", ");
  const rows: readonly (readonly [label: string, text: string])[] = [
    ["pi", `${info.pi.version} (${sources[info.pi.source] ?? info.pi.source}) ${info.pi.path}`],
    ["url", file.url],
    ...(file.tlsUrl === undefined ? [] : [["https", file.tlsUrl] as const]),
    ["socket", file.socketPath],
    ["state", info.stateDir],
    ["sessions", sessions],
    ["clients", `${info.connections} connected`],
    ["memory", `${mebibytes(info.residentBytes)}, without the pi processes`],
  ];
  const up = duration(Date.now() - info.startedAt);
  return [
    `${output.paint("green", "running")}  pi-rpcd ${info.version}, process ${info.pid}, for ${up}`,
    ...rows.map(([label, text]) => `  ${output.paint("dim", label.padEnd(8))} ${text}`),
  ];
}
