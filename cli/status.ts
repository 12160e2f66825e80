import { connect, DaemonNotRunningError, readDaemonFile } from "../client/index.ts";
import type { Command } from "./command.ts";
import { exitCodes } from "./exit-codes.ts";
import { columns } from "./output.ts";

export const status: Command = {
  name: "status",
  summary: "whether a daemon runs, which pi it uses, how many sessions it has",
  arguments: "",
  positionals: { min: 0, max: 0 },
  options: {},
  startsDaemon: false,
  examples: ["pi-rpcd status", "pi-rpcd status --json"],
  run: async ({ stateDir, output, json }) => {
    try {
      const client = await connect({ stateDir });
      const info = await client.info();
      await client.close();
      const { url, socketPath } = await readDaemonFile(stateDir);
      if (json) {
        output.json({ running: true, url, socketPath, ...info });
        return exitCodes.done;
      }
      const sessions = Object.entries(info.sessions).map(([state, count]) => `${count} ${state}`);
      const rows = [
        ["daemon", `pi-rpcd ${info.version}, process ${info.pid}, since ${new Date(info.startedAt).toISOString()}`],
        ["pi", `${info.pi.version} (${info.pi.source}: ${info.pi.path})`],
        ["address", `${url}, ${socketPath}`],
        ["sessions", sessions.length === 0 ? "none" : sessions.join(", ")],
        ["connections", String(info.connections)],
        ["memory", `${Math.round(info.residentBytes / 1024 / 1024)} MiB, without the children`],
      ];
      for (const line of columns(rows)) output.line(line);
      return exitCodes.done;
    } catch (error) {
      if (!(error instanceof DaemonNotRunningError)) throw error;
      if (json) output.json({ running: false, reason: error.reason, stateDir });
      else output.line(error.reason === "missing" ? `No daemon runs on ${stateDir}.` : error.message);
      return exitCodes.noDaemon;
    }
  },
};
