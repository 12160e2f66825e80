import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { startDaemonUnderTest } from "../lib/daemon-under-test.ts";
import { echoPi } from "../lib/echo-sources.ts";
import type { Figure } from "../lib/figure.ts";
import { interleave, ratios } from "../lib/statistics.ts";

/** The start time of a short command, compared with Node's own. */
export const commandStart: Figure = {
  title: "Starting the command line, against node -e 0",
  repetitions: 15,
  measure: async (setting, resources) => {
    const daemon = await startDaemonUnderTest(setting, resources, { pi: echoPi });
    const program = join(setting.dist, "cli", "main.js");
    if (!existsSync(program)) throw new Error(`${program} does not exist.`);
    const env = {
      ...process.env,
      PI_RPCD_STATE_DIR: dirname(daemon.socketPath),
      XDG_CACHE_HOME: join(setting.directory, "cache"),
    };
    const time = async (...args: readonly string[]): Promise<number> => {
      const startedAt = performance.now();
      const child = spawn(process.execPath, args, { env, stdio: "ignore" });
      const [code] = (await once(child, "exit")) as [number | null];
      if (code !== 0) throw new Error(`${args.join(" ")} ended with ${code}.`);
      return performance.now() - startedAt;
    };
    const times = await interleave(setting.repetitions, {
      node: () => time("-e", "0"),
      help: () => time(program, "--help"),
      status: () => time(program, "status"),
    });
    const goal = { id: "edge", sense: "at most", target: 2.5 } as const;
    return {
      rows: [
        { name: "node -e 0", unit: "ms", values: times.node },
        { name: "pi-rpcd --help / node -e 0", unit: "x", values: ratios(times.help, times.node), goal },
        {
          name: "pi-rpcd status of a running daemon / node -e 0",
          unit: "x",
          values: ratios(times.status, times.node),
          goal,
        },
      ],
      notes: ["the build, with the compile cache of its first start; processes run one after the other"],
    };
  },
};
