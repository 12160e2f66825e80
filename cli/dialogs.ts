import type { Dialog } from "../protocol/dialog.ts";
import { callDaemon } from "./daemon-call.ts";
import { exitCodes } from "./exit-codes.ts";
import { duration, shortId } from "./format.ts";
import type { Invocation } from "./invocation.ts";
import { allDialogs } from "./open-dialogs.ts";
import { chooseSession } from "./session-argument.ts";
import { oneLine, table } from "./text.ts";
import { ensured } from "./with-client.ts";

/** Lists the open dialogs. */
export async function dialogs(invocation: Invocation<"dialogs">): Promise<number> {
  const { output, signal } = invocation;
  const [word] = invocation.arguments;
  const where = { stateDir: await ensured(invocation), signal };
  const sessionId =
    word === undefined ? undefined : chooseSession((await callDaemon("session/list", {}, where)).sessions, word);
  const open = await allDialogs(where, sessionId);
  if (output.json) {
    output.document({ dialogs: open });
    return exitCodes.done;
  }
  if (open.length === 0) {
    output.aside("No open dialogs.");
    return exitCodes.done;
  }
  const [head, ...rows] = table(
    [["DIALOG", "SESSION", "KIND", "AGE", "ENDS IN", "TITLE"], ...open.map(row)],
    output.columns,
  );
  output.print(output.paint("dim", head ?? ""));
  for (const line of rows) output.print(line);
  return exitCodes.done;
}

function row({ dialogId, sessionId, method, openedAt, deadline, unattendedUntil, title }: Dialog): readonly string[] {
  const now = Date.now();
  const endsAt = Math.min(deadline, unattendedUntil ?? deadline);
  const times = [duration(now - openedAt), duration(endsAt - now)];
  return [dialogId, shortId(sessionId), method, ...times, title].map(oneLine);
}
