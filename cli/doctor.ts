import { dirname, resolve } from "node:path";
import { stateDirectory } from "../client/discovery.ts";
import type { DaemonInfo, PiInfo } from "../protocol/daemon.ts";
import { type LocateOptions, locatePi } from "../server/pi/locate.ts";
import { type DaemonState, daemonState, whyNotRunning } from "./daemon-state.ts";
import { checkConfiguration } from "./doctor/configuration.ts";
import { bad, type Finding, good, odd, type Report, skipped } from "./doctor/finding.ts";
import { checkKeys, checkModels } from "./doctor/models.ts";
import { checkRoundTrip } from "./doctor/round-trip.ts";
import { checkService } from "./doctor/service.ts";
import { checkFreeSocket, checkSocket, checkStateDirectory, checkToken } from "./doctor/state.ts";
import { reportOf } from "./errors.ts";
import { exitCodes } from "./exit-codes.ts";
import type { Invocation } from "./invocation.ts";
import type { Output, Style } from "./output.ts";
import { oneLine } from "./text.ts";
import { packageVersion } from "./version.ts";
import { skewOf } from "./version-skew.ts";

type Doctor = Invocation<"doctor">;

const marks: Readonly<Record<Finding["state"], readonly [mark: string, style: Style]>> = {
  good: ["✔", "green"],
  odd: ["!", "yellow"],
  bad: ["✘", "red"],
  skipped: ["-", "dim"],
};

/** Checks everything that pi-rpcd needs, and says how to fix each problem. */
export async function doctor(invocation: Doctor): Promise<number> {
  const { options, output, env, signal } = invocation;
  const stateDir = stateDirectory(options["state-dir"], env);
  const findings: Finding[] = [];
  const add = (...more: readonly Finding[]): void => {
    for (const finding of more) {
      findings.push(finding);
      if (!output.json) show(finding, output);
    }
  };
  add(node(), checkStateDirectory(stateDir, env), checkToken(stateDir));
  const service = checkService(stateDir, env);
  if (service !== undefined) add(service);
  const { info, findings: ofDaemon } = await daemon(stateDir, signal);
  add(...ofDaemon);
  const configuration = checkConfiguration(options.config, env);
  add(configuration.finding);
  const { pi, finding } = await piOf({ option: options.pi, configured: configuration.pi, env });
  add(finding);
  const why = options.quick === true ? "--quick" : pi === undefined ? "needs pi" : undefined;
  if (why !== undefined || pi === undefined) {
    const rest = ["extension", "round trip"].map((name) => skipped(name, why ?? ""));
    add(checkKeys(info, env) ?? skipped("model", why ?? ""), ...rest);
  } else {
    const progress = progressOn(output);
    progress.show("asking pi for its models");
    const { agentDirectory } = configuration;
    add(await checkModels({ stateDir, info, pi, agentDirectory, env, signal }).finally(progress.clear));
    const trip = await checkRoundTrip({ pi: pi.path, env, signal, progress: progress.show }).finally(progress.clear);
    add(...trip);
  }
  const isWell = findings.every(({ state }) => state === "good" || state === "odd" || state === "skipped");
  if (output.json) output.document({ ok: isWell, stateDir, findings } satisfies Report);
  else {
    const count = findings.filter(({ state }) => state === "bad").length;
    output.print(
      isWell
        ? output.paint("green", "No problems found.")
        : output.paint("red", `${count} ${count === 1 ? "problem" : "problems"} found.`),
    );
  }
  return isWell ? exitCodes.done : exitCodes.failed;
}

function show({ name, state, found, todo }: Finding, output: Output): void {
  const [mark, style] = marks[state];
  output.print(`${output.paint(style, mark)} ${name.padEnd(15)}  ${oneLine(found)}`);
  if (todo !== undefined) output.print(`${" ".repeat(19)}${output.paint("bold", `→ ${oneLine(todo)}`)}`);
}

/** A line that is shown during a long check, on a terminal only. */
function progressOn(output: Output): { readonly show: (text: string) => void; readonly clear: () => void } {
  const isShown = output.isTerminal && !output.json;
  return {
    show: (text) => {
      if (isShown) output.write(`\r\u001b[K${output.paint("dim", `… ${text}`)}`);
    },
    clear: () => {
      if (isShown) output.write("\r\u001b[K");
    },
  };
}

function node(): Finding {
  // An older version was refused before anything was loaded.
  return good("node", `${process.versions.node} (${process.execPath})`);
}

async function daemon(
  stateDir: string,
  signal: AbortSignal,
): Promise<{ readonly info?: DaemonInfo; readonly findings: readonly Finding[] }> {
  const name = "daemon";
  let found: DaemonState;
  try {
    found = await daemonState(stateDir, signal);
  } catch (error) {
    signal.throwIfAborted();
    const { message } = reportOf(error);
    const todo = "Run: pi-rpcd stop && pi-rpcd start. If the daemon does not answer, kill its process.";
    return { findings: [bad(name, message, todo), skipped("socket", "needs a running daemon")] };
  }
  if (found.kind === "running") {
    const { file, info } = found;
    const skew = skewOf(packageVersion(), info);
    const facts = `pi-rpcd ${info.version} runs (process ${info.pid}) with pi ${info.pi.version} ${info.pi.path}`;
    const failing = info.store?.state === "failing" ? `; its store fails: ${info.store.why ?? "no reason given"}` : "";
    const said =
      failing !== ""
        ? bad(name, facts + failing, `Free space on the disk of ${dirname(info.stateDir)}, or see: pi-rpcd logs`)
        : skew !== undefined
          ? odd(name, `${facts}; ${skew}`, "pi-rpcd stop && pi-rpcd start")
          : good(name, facts);
    return { info, findings: [said, checkSocket(file.socketPath), ...liveRestoreOf(info)] };
  }
  const socket = await checkFreeSocket(stateDir);
  const why = whyNotRunning(found, stateDir);
  const unusable = `Remove the file and start again: rm ${stateDir}/daemon.json; pi-rpcd start`;
  const finding = {
    absent: good(name, "not running; the first command that needs it starts it"),
    stale: bad(name, why, "pi-rpcd start (it replaces the file)"),
    unusable: bad(name, why, unusable),
  }[found.kind];
  return { findings: [finding, socket] };
}

/** Whether pi processes survive the daemon. */
function liveRestoreOf({ liveRestore }: DaemonInfo): readonly Finding[] {
  if (liveRestore === undefined) return [];
  const { available, why = "not available" } = liveRestore;
  const name = "live restore";
  return [available ? good(name, "pi processes survive a crash and a restart of the daemon") : skipped(name, why)];
}

async function piOf({ option, configured, env }: LocateOptions): Promise<{ pi?: PiInfo; finding: Finding }> {
  const sources = {
    option: "from --pi",
    environment: "from PI_RPCD_PI",
    configuration: "from the configuration",
    path: "on PATH",
    bundled: "bundled",
  } as const;
  try {
    const pi = await locatePi({ option: option === undefined ? undefined : resolve(option), configured, env });
    const able = Object.entries(pi.capabilities).filter(([, has]) => has === true);
    const extras = able.length === 0 ? "" : `; has ${able.map(([name]) => name).join(", ")}`;
    return { pi, finding: good("pi", `${pi.version} (${sources[pi.source]}) ${pi.path}${extras}`) };
  } catch (error) {
    const { name, message } = reportOf(error);
    const install = "npm install -g @earendil-works/pi-coding-agent";
    const todo = name === "pi_too_old" ? `Update it: ${install}` : `Install pi (${install}), or choose one with --pi.`;
    return { finding: bad("pi", message, todo) };
  }
}
