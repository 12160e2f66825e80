import type { SessionInfo } from "../protocol/session.ts";
import { callDaemon } from "./daemon-call.ts";
import { exitCodes } from "./exit-codes.ts";
import { duration, homeRelative, shortId } from "./format.ts";
import type { Invocation } from "./invocation.ts";
import { oneLine, table } from "./text.ts";
import { askDaemon } from "./with-client.ts";

/** Lists the sessions. */
export async function ls(invocation: Invocation<"ls">): Promise<number> {
  const { options, output, env } = invocation;
  const { sessions } = await askDaemon(invocation, (stateDir, signal) =>
    callDaemon("session/list", {}, { stateDir, signal }),
  );
  if (output.json) {
    output.document({ sessions });
    return exitCodes.done;
  }
  if (options.ids === true) {
    for (const { sessionId } of sessions) output.print(oneLine(sessionId));
    return exitCodes.done;
  }
  if (sessions.length === 0) {
    output.aside("No sessions. Create one with: pi-rpcd new");
    return exitCodes.done;
  }
  const [head, ...rows] = table(
    [
      ["SESSION", "STATE", "AGE", "MODEL", "NAME", "DIRECTORY"],
      ...sessions.map((session) => row(session, env["HOME"])),
    ],
    output.columns,
  );
  output.print(output.paint("dim", head ?? ""));
  for (const line of rows) output.print(line);
  return exitCodes.done;
}

function row(
  { sessionId, state, createdAt, model, name, cwd }: SessionInfo,
  home: string | undefined,
): readonly string[] {
  const modelName = model === undefined ? "-" : `${model.provider}/${model.id}`;
  const age = duration(Date.now() - createdAt);
  return [shortId(sessionId), state, age, modelName, name ?? "-", homeRelative(cwd, home)].map(oneLine);
}
