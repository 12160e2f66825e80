import { answerWhenOpen } from "../client/dialogs.ts";
import type { Dialog, DialogAnswer } from "../protocol/dialog.ts";
import { WireError } from "../protocol/errors.ts";
import { callDaemon } from "./daemon-call.ts";
import { CommandError, UsageError } from "./errors.ts";
import { exitCodes } from "./exit-codes.ts";
import type { Invocation } from "./invocation.ts";
import { allDialogs, chooseDialog } from "./open-dialogs.ts";
import type { Output } from "./output.ts";
import { oneLine } from "./text.ts";
import { ensured } from "./with-client.ts";

/** Shows a dialog of an extension, or answers it. */
export async function dialog(invocation: Invocation<"dialog">): Promise<number> {
  const { options, output, signal } = invocation;
  const [action = "", word = "", ...texts] = invocation.arguments;
  if (action !== "show" && action !== "answer") {
    throw new UsageError(`ACTION must be show or answer, not "${action}".`, "dialog");
  }
  const answer = action === "answer" ? answerOf(options, texts) : undefined;
  const where = { stateDir: await ensured(invocation), signal };
  const open = await allDialogs(where);
  const dialogId = chooseDialog(open, word);
  if (answer === undefined) {
    const found = open.find((each) => each.dialogId === dialogId);
    if (found === undefined) throw new CommandError("dialog_not_found", `No dialog "${word}" is open.`);
    show(found, output);
    return exitCodes.done;
  }
  try {
    const ended = await answerWhenOpen(() => callDaemon("dialog/respond", { dialogId, answer }, where), { signal });
    if (output.json) output.document(ended);
    else output.print(`${dialogId} is ${ended.resolution?.how ?? "open"}.`);
    return exitCodes.done;
  } catch (error) {
    if (!(error instanceof WireError) || error.kind !== "stale") throw error;
    if (output.json) output.document({ dialogId, resolution: error.data["resolution"] });
    else output.print(oneLine(error.message));
    return exitCodes.unmet;
  }
}

function answerOf(options: Invocation<"dialog">["options"], texts: readonly string[]): DialogAnswer {
  const given: DialogAnswer[] = [
    ...(options.yes === true ? [{ confirmed: true }] : []),
    ...(options.no === true ? [{ confirmed: false }] : []),
    ...(options.cancel === true ? [{ cancelled: true } as const] : []),
    ...(texts.length > 0 ? [{ value: texts.join(" ") }] : []),
  ];
  const [answer, ...others] = given;
  if (answer !== undefined && others.length === 0) return answer;
  throw new UsageError("Give one answer: TEXT, --yes, --no or --cancel.", "dialog");
}

function show(dialog: Dialog, output: Output): void {
  if (output.json) {
    output.document(dialog);
    return;
  }
  const { method, title, message, options = [], placeholder, prefill } = dialog;
  output.print(`${method}: ${oneLine(title)}`);
  for (const text of [message, placeholder, prefill]) if (text !== undefined) output.printText(text);
  for (const option of options) output.print(`  ${oneLine(option)}`);
}
