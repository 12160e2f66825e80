import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { AskRefused } from "../../../extension/engine-port.ts";
import { messageOf } from "../../../extension/pi-types.ts";
import type { PruningBench } from "../bench.ts";
import { blockIdOf, blockNumberOf } from "../block-id.ts";
import type { Teller } from "../teller.ts";
import type { PruningDesk } from "./desk.ts";
import { changeText, contextText, exportText, helpText, statsText } from "./texts.ts";

const PRUNING_COMMAND = "dcp";
/** Where another extension has the name. */
const OTHER_COMMAND = "pi-rpcd-dcp";

interface Room {
  readonly bench: PruningBench;
  readonly desk: PruningDesk;
  readonly teller: Teller;
  /** Has the daemon read the configuration again. */
  readonly reload: () => void;
}

/**
 * The command `/dcp`. Where another extension has one of that name ours has another: with two, pi knows neither by the name
 * alone, and would send the text to the model.
 */
export function addPruningCommand(room: Room): void {
  const { bench, teller } = room;
  let name: string | undefined;
  bench.onSession(() => {
    if (name !== undefined) return;
    const isTaken = bench.pi.getCommands().some((other) => /^dcp(?::\d+)?$/u.test(other.name));
    name = isTaken ? OTHER_COMMAND : PRUNING_COMMAND;
    bench.pi.registerCommand(name, {
      description: "What fills the context, and what was taken out of it.",
      handler: async (text: string, ctx: ExtensionContext) => {
        try {
          ctx.ui.notify(
            teller.answering(() => obey(text.trim(), room, ctx)),
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

type Verb = (rest: string, room: Room, ctx: ExtensionContext) => string;

const verbs: Readonly<Record<string, Verb>> = {
  help: () => helpText,
  context: (rest, { desk }, ctx) => alone(rest, () => contextText(desk.inspect(ctx))),
  stats: (rest, { desk }, ctx) => alone(rest, () => statsText(desk.stats(ctx))),
  export: (rest, { desk }, ctx) => alone(rest, () => exportText(desk.export(ctx))),
  sweep: (rest, { desk }, ctx) => changeText(desk.sweep(countIn(rest), true, ctx)),
  manual: (rest, { desk }, ctx) => {
    const now = rest === "" ? desk.modeOf(ctx) : undefined;
    if (rest !== "" && rest !== "on" && rest !== "off") throw wrong();
    const { mode } = desk.setMode(rest === "on" || now === "automatic" ? "manual" : "automatic", ctx);
    return `Manual mode is ${mode === "manual" ? "on" : "off"}.`;
  },
  compress: (rest, { desk }, ctx) => {
    desk.compress(rest === "" ? {} : { focus: rest }, ctx);
    return "The model is asked to compress.";
  },
  decompress: (rest, { desk }, ctx) => changeText(desk.decompress(blockIn(rest), ctx)),
  recompress: (rest, { desk }, ctx) => changeText(desk.recompress(blockIn(rest), ctx)),
  reload: (rest, { reload }) =>
    alone(rest, () => {
      reload();
      return "The configuration is read again.";
    }),
};

/** Does what the words say, and gives the answer for people. */
function obey(text: string, room: Room, ctx: ExtensionContext): string {
  const [, verb = "", rest = ""] = /^(\S*)\s*(.*)$/su.exec(text) ?? [];
  const run = verb === "" ? verbs["help"] : Object.hasOwn(verbs, verb) ? verbs[verb] : undefined;
  if (run === undefined) throw wrong();
  return run(rest, room, ctx);
}

function alone(rest: string, answer: () => string): string {
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
