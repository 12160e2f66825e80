import type { Command } from "./command.ts";
import { exitCodes } from "./exit-codes.ts";
import { columns } from "./output.ts";

export const ls: Command = {
  name: "ls",
  summary: "list the sessions, the newest first",
  arguments: "",
  positionals: { min: 0, max: 0 },
  options: {},
  startsDaemon: false,
  examples: ["pi-rpcd ls", "pi-rpcd ls --json"],
  run: async ({ connect, output, json }) => {
    const client = await connect();
    const sessions = await client.listSessions();
    await client.close();
    if (json) output.json({ sessions });
    else if (sessions.length === 0) output.line("No sessions. Create one with: pi-rpcd new");
    else {
      const rows = sessions.map(({ sessionId, state, model, pendingDeliveries, name, cwd }) => [
        sessionId,
        state,
        model === undefined ? "-" : `${model.provider}/${model.id}`,
        String(pendingDeliveries),
        name ?? "-",
        cwd,
      ]);
      for (const line of columns([["SESSION", "STATE", "MODEL", "PENDING", "NAME", "CWD"], ...rows])) output.line(line);
    }
    return exitCodes.done;
  },
};
