import { httpCall } from "../client/http-client.ts";
import type { Dialog } from "../protocol/dialog.ts";
import { CommandError } from "./errors.ts";

type Where = Parameters<typeof httpCall>[2];

const minPart = 4;

/** All dialogs that are open, of all sessions or of one. */
export async function allDialogs(where: Where, sessionId?: string): Promise<readonly Dialog[]> {
  const all: Dialog[] = [];
  for (let after: string | undefined; ; ) {
    const { dialogs, next } = await httpCall(
      "dialog/list",
      { ...(sessionId === undefined ? {} : { sessionId }), ...(after === undefined ? {} : { after }) },
      where,
    );
    all.push(...dialogs);
    if (next === undefined) return all;
    after = next;
  }
}

/** The dialog that ID on the command line means; one that is not open is taken as it is written. */
export function chooseDialog(dialogs: readonly Dialog[], word: string): string {
  const matching = dialogs.filter(({ dialogId }) => dialogId.startsWith(word)).map(({ dialogId }) => dialogId);
  const [match] = matching;
  if (match === undefined || matching.includes(word)) return word;
  if (word.length >= minPart && matching.length === 1) return match;
  throw new CommandError(
    "dialog_ambiguous",
    `"${word}" may be ${matching.slice(0, 4).join(", ")}: give more of the id.`,
    {
      data: { matching },
    },
  );
}
