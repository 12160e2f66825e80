import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { AskRefused } from "../../../extension/engine-port.ts";
import { messageOf } from "../../../extension/pi-types.ts";
import { blockIdOf, blockNumberOf } from "../block-id.ts";
import type { PruningNotifier } from "../notifier.ts";
import type { PruningServices } from "../pruning-services.ts";
import type { PruningCommands } from "./pruning-commands.ts";
import { changeText, contextText, exportText, helpText, statsText } from "./texts.ts";

const PRUNING_COMMAND = "dcp";
/** The name if another extension has the first one. */
const OTHER_COMMAND = "pi-rpcd-dcp";

interface CommandContext {
  readonly host: Pick<PruningServices, "onSession" | "pi">;
  readonly commands: PruningCommands;
  readonly notifier: PruningNotifier;
  /** Asks the daemon to reload the configuration. */
  readonly reload: () => void;
}

/**
 * Registers the command `/dcp`, or another name if another extension has `/dcp`: with two commands of one name, pi would
 * recognize neither and send the text to the model.
 */
export function addPruningCommand(context: CommandContext): void {
  const { host, notifier } = context;
  let name: string | undefined;
  host.onSession(() => {
    if (name !== undefined) return;
    const isTaken = host.pi.getCommands().some((other) => /^dcp(?::\d+)?$/u.test(other.name));
    name = isTaken ? OTHER_COMMAND : PRUNING_COMMAND;
    host.pi.registerCommand(name, {
      description: "Show the context, its blocks and what was removed.",
      handler: async (text: string, ctx: ExtensionContext) => {
        try {
          ctx.ui.notify(
            notifier.answering(() => runCommand(text.trim(), context, ctx)),
            "info",
          );
        } catch (thrown) {
          const words = thrown instanceof AskRefused ? thrown.message : `It failed: ${messageOf(thrown)}`;
          ctx.ui.notify(words, "error");
        }
      },
    });
  }, "pruning_command");
}

type Verb = (rest: string, context: CommandContext, ctx: ExtensionContext) => string;

const verbs: Readonly<Record<string, Verb>> = {
  help: () => helpText,
  context: (rest, { commands }, ctx) => withoutArguments(rest, () => contextText(commands.inspect(ctx))),
  stats: (rest, { commands }, ctx) => withoutArguments(rest, () => statsText(commands.stats(ctx))),
  export: (rest, { commands }, ctx) => withoutArguments(rest, () => exportText(commands.export(ctx))),
  sweep: (rest, { commands }, ctx) => changeText(commands.sweep(countIn(rest), true, ctx)),
  manual: (rest, { commands }, ctx) => {
    const now = rest === "" ? commands.modeOf(ctx) : undefined;
    if (rest !== "" && rest !== "on" && rest !== "off") throw wrong();
    const { mode } = commands.setMode(rest === "on" || now === "automatic" ? "manual" : "automatic", ctx);
    return `Manual mode is ${mode === "manual" ? "on" : "off"}.`;
  },
  compress: (rest, { commands }, ctx) => {
    commands.compress(rest === "" ? {} : { focus: rest }, ctx);
    return "The model is asked to compress.";
  },
  decompress: (rest, { commands }, ctx) => changeText(commands.decompress(blockIn(rest), ctx)),
  recompress: (rest, { commands }, ctx) => changeText(commands.recompress(blockIn(rest), ctx)),
  reload: (rest, { reload }) =>
    withoutArguments(rest, () => {
      reload();
      return "The configuration is read again.";
    }),
};

/** Runs the command and returns its answer as text. */
function runCommand(text: string, context: CommandContext, ctx: ExtensionContext): string {
  const [, verb = "", rest = ""] = /^(\S*)\s*(.*)$/su.exec(text) ?? [];
  const run = verb === "" ? verbs["help"] : Object.hasOwn(verbs, verb) ? verbs[verb] : undefined;
  if (run === undefined) throw wrong();
  return run(rest, context, ctx);
}

function withoutArguments(rest: string, answer: () => string): string {
  if (rest !== "") throw wrong();
  return answer();
}

function countIn(rest: string): number | undefined {
  if (rest === "") return undefined;
  const count = /^\d{1,4}$/u.test(rest) ? Number(rest) : 0;
  if (count < 1 || count > 1_000) throw new AskRefused("invalid_params", "Sweep the outputs of 1 to 1000 tool calls.");
  return count;
}

function blockIn(rest: string): string {
  const number = blockNumberOf(rest);
  if (number === undefined) throw new AskRefused("invalid_params", "Say which block, such as b3.");
  return blockIdOf(number);
}

function wrong(): AskRefused {
  return new AskRefused("invalid_params", helpText);
}
