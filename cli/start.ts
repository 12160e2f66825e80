import { resolve } from "node:path";
import { connect, DaemonNotRunningError } from "../client/index.ts";
import { logFileName, startInBackground } from "./background.ts";
import { type Command, type Context, text, wholeNumber } from "./command.ts";
import { exitCodes } from "./exit-codes.ts";

export const start: Command = {
  name: "start",
  summary: "start the daemon",
  arguments: "",
  positionals: { min: 0, max: 0 },
  options: {
    foreground: { summary: "stay, log to stderr, and end with Ctrl-C" },
    port: { value: "N", summary: "TCP port on 127.0.0.1", fallback: "chosen by the system" },
    pi: { value: "PATH", summary: "pi's cli.js or executable", fallback: "PI_RPCD_PI, pi on PATH, the bundled one" },
    log: { value: "FILE", summary: "log to this file", fallback: `stderr, in the background ${logFileName} in the state directory` },
    "log-level": { value: "LEVEL", summary: "trace, debug, info, warn, error or silent", fallback: "info" },
  },
  startsDaemon: false,
  examples: ["pi-rpcd start", "pi-rpcd start --foreground --port 7337", "pi-rpcd start --pi ~/src/pi/dist/bundle/cli.js"],
  run: async (context) => (context.options["foreground"] === true ? await foreground(context) : await background(context)),
};

async function background(context: Context): Promise<number> {
  const { stateDir, output, json, options } = context;
  const running = await findRunning(stateDir);
  if (running !== undefined) {
    if (json) output.json({ started: false, ...running });
    else {
      output.line(`The daemon runs already: process ${running.pid}, ${running.url}`);
      if (options["port"] !== undefined || options["pi"] !== undefined) {
        output.note("it keeps its own --port and --pi; stop it first to start it with others");
      }
    }
    return exitCodes.done;
  }
  // Checked here too, so that a wrong number is a usage error and no failed start.
  wholeNumber(options, "port", { min: 0, max: 65_535 });
  const args = (["port", "log-level"] as const).flatMap((name) => {
    const value = text(options, name);
    return value === undefined ? [] : [`--${name}`, value];
  });
  const pi = text(options, "pi");
  const log = text(options, "log");
  const ready = await startInBackground({
    stateDir,
    arguments: [
      ...args,
      ...(pi === undefined ? [] : ["--pi", resolve(context.directory, pi)]),
      ...(log === undefined ? [] : ["--log", resolve(context.directory, log)]),
    ],
  });
  if (json) output.json({ started: true, ...ready });
  else {
    output.line(`The daemon runs: process ${ready.pid}`);
    output.line(`  ${ready.url}`);
    output.line(`  ${ready.socketPath}`);
    output.line(`  ${log ?? `${stateDir}/${logFileName}`}`);
  }
  return exitCodes.done;
}

async function findRunning(stateDir: string): Promise<{ pid: number; url: string; version: string } | undefined> {
  try {
    const client = await connect({ stateDir });
    const { pid, version } = await client.info();
    await client.close();
    const { readDaemonFile } = await import("../client/index.ts");
    return { pid, version, url: (await readDaemonFile(stateDir)).url };
  } catch (error) {
    if (error instanceof DaemonNotRunningError) return undefined;
    throw error;
  }
}

/** Runs the daemon in this process until a signal ends it; a second signal ends it at once. */
async function foreground({ stateDir, output, json, options, directory }: Context): Promise<number> {
  const [{ startDaemon }, { createLog }] = await Promise.all([import("../server/daemon.ts"), import("../server/log.ts")]);
  const file = text(options, "log");
  const pi = text(options, "pi");
  const log = createLog({
    level: text(options, "log-level") ?? "info",
    file: file === undefined ? undefined : resolve(directory, file),
  });
  const fatal = (error: unknown): void => {
    log.fatal({ err: error }, "the daemon failed");
    process.exit(exitCodes.failed);
  };
  process.on("uncaughtException", fatal);
  process.on("unhandledRejection", fatal);
  const daemon = await startDaemon({
    stateDir,
    port: wholeNumber(options, "port", { min: 0, max: 65_535 }),
    pi: pi === undefined ? undefined : resolve(directory, pi),
    env: process.env,
    log,
  });
  const { pid, url, socketPath, version } = daemon.file;
  if (json) output.json({ pid, url, socketPath, stateDir: daemon.stateDir, version });
  else output.line(`pi-rpcd ${version} listens on ${url} and ${socketPath}`);
  let signals = 0;
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(name, () => {
      signals += 1;
      if (signals > 1) process.exit(exitCodes.failed);
      log.info({ signal: name }, "ending");
      void daemon.stop();
    });
  }
  await daemon.closed;
  return exitCodes.done;
}
