import type { Dialog } from "../protocol/dialog.ts";
import { callDaemon } from "./daemon-call.ts";
import { CommandError } from "./errors.ts";
import { chooseId } from "./session-argument.ts";

type Where = Parameters<typeof callDaemon>[2];

/** Far more than a daemon can have open. */
const maxDialogs = 100_000;

/** All open dialogs, of all sessions or of one. */
export async function allDialogs(where: Where, sessionId?: string): Promise<readonly Dialog[]> {
  const all: Dialog[] = [];
  for (let after: string | undefined; ; ) {
    const { dialogs, next } = await callDaemon(
      "dialog/list",
      { ...(sessionId === undefined ? {} : { sessionId }), ...(after === undefined ? {} : { after }) },
      where,
    );
    all.push(...dialogs);
    if (next === undefined) return all;
    // A daemon that repeats its pages must not cause an endless loop.
    if (next === after || all.length > maxDialogs) {
      throw new CommandError("protocol_violation", "The daemon's list of dialogs does not end.");
    }
    after = next;
  }
}

/** The dialog that ID on the command line means; an unknown id is returned unchanged. Throws `dialog_ambiguous`. */
export function chooseDialog(dialogs: readonly Dialog[], word: string): string {
  return (
    chooseId(
      dialogs.map(({ dialogId }) => dialogId),
      word,
      "dialog",
    ) ?? word
  );
}
