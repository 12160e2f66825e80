import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { AskRefused } from "../../../extension/engine-port.ts";
import { isRecord } from "../../../protocol/objects.ts";
import type { PruningNotifier } from "../notifier.ts";
import type { PruningServices } from "../pruning-services.ts";
import { addPruningCommand } from "./dcp-command.ts";
import type { CompressOrder, PruningCommands } from "./pruning-commands.ts";

type Params = Readonly<Record<string, unknown>>;

/** Answers the methods `pruning/…` and registers the command. */
export function addPruningMethods(
  host: Pick<PruningServices, "answer" | "debug" | "onSession" | "pi" | "reload">,
  commands: PruningCommands,
  notifier: PruningNotifier,
): void {
  const answer = (about: string, answerer: (params: Params, ctx: ExtensionContext) => unknown): void => {
    host.answer(`pruning/${about}`, (params, ctx) => {
      const given = isRecord(params) ? params : {};
      const answered = answerer(given, ctx);
      host.debug("pruning", { asked: about });
      return answered;
    });
  };
  answer("inspect", (_params, ctx) => commands.inspect(ctx));
  answer("stats", (_params, ctx) => commands.stats(ctx));
  answer("export", (_params, ctx) => commands.export(ctx));
  answer("sweep", ({ last, wait }, ctx) => commands.sweep(count(last), wait === true, ctx));
  answer("setMode", ({ mode }, ctx) => commands.setMode(mode === "manual" ? "manual" : "automatic", ctx));
  // The daemon has validated the params.
  answer("compress", (params, ctx) => commands.compress(params as CompressOrder, ctx));
  answer("decompress", ({ block }, ctx) => commands.decompress(text(block), ctx));
  answer("recompress", ({ block }, ctx) => commands.recompress(text(block), ctx));
  addPruningCommand({ host, commands, notifier, reload: () => host.reload() });
}

function count(value: unknown): number | undefined {
  return typeof value === "number" && Number.isSafeInteger(value) && value > 0 ? value : undefined;
}

function text(value: unknown): string {
  if (typeof value === "string") return value;
  throw new AskRefused("invalid_params", "block must be a string.");
}
