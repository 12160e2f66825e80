import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pino } from "pino";
import { startDaemon } from "../../../server/daemon.ts";
import { dropInMain, helper } from "../../helpers/programs.ts";
import type { World } from "./world.ts";

/** A program that speaks pi's RPC mode on stdin and stdout. */
export interface Program {
  readonly name: string;
  /** Whether it is the drop-in: the allowed differences are its own. */
  readonly isDropIn: boolean;
  /** The command and its arguments before `--mode rpc`. */
  readonly command: readonly string[];
  readonly env?: (world: World) => NodeJS.ProcessEnv;
  /** Starts what the program needs in its world, and returns what ends it. */
  readonly prepare?: (world: World) => Promise<() => Promise<void>>;
  /** What is wrong with a run besides its records, called when the program has ended. */
  readonly problem?: (world: World) => string | undefined;
}

/** Pi itself. */
export function piProgram(cli: string): Program {
  return { name: "pi", isDropIn: false, command: [process.execPath, cli] };
}

/** The drop-in with a daemon of its own, which runs in this process and so ends with it. */
export function dropInProgram(cli: string): Program {
  return {
    name: "drop-in",
    isDropIn: true,
    command: [process.execPath, "--disable-warning=ExperimentalWarning", dropInMain],
    env: (world) => ({ PI_RPCD_STATE_DIR: world.stateDir, PI_RPCD_PI: cli }),
    prepare: async (world) => {
      const daemon = await startDaemon({
        stateDir: world.stateDir,
        pi: cli,
        helper,
        drainMs: 0,
        env: { ...world.env, PI_RPCD_VALIDATE: "1", PI_RPCD_WARM_CHILDREN: "0" },
        log: pino({ level: process.env["TWIN_LOG_LEVEL"] ?? "silent" }, pino.destination(2)),
      });
      return () => daemon.stop();
    },
    // Otherwise pi would be compared with itself.
    problem: ({ stateDir }) => {
      const log = join(stateDir, "rpc.log");
      return existsSync(log) ? `it became pi: ${readFileSync(log, "utf8").trim()}` : undefined;
    },
  };
}
