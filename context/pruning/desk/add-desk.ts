import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { AskRefused } from "../../../extension/engine-port.ts";
import { isObject } from "../../../extension/pi-types.ts";
import type { PruningBench } from "../bench.ts";
import type { Teller } from "../teller.ts";
import { addPruningCommand } from "./commands.ts";
import { type CompressOrder, type DeskParts, PruningDesk } from "./desk.ts";

type Params = Readonly<Record<string, unknown>>;

/** Answers the methods of pruning, and puts the command into the session. */
export function addDesk(bench: PruningBench, parts: DeskParts, teller: Teller): void {
  const desk = new PruningDesk(bench, parts);
  const answer = (about: string, answerer: (params: Params, ctx: ExtensionContext) => unknown): void => {
    bench.answer(`pruning/${about}`, (params, ctx) => {
      const given = isObject(params) ? params : {};
      const answered = answerer(given, ctx);
      bench.debug("pruning", { asked: about });
      return answered;
    });
  };
  answer("inspect", (_params, ctx) => desk.inspect(ctx));
  answer("stats", (_params, ctx) => desk.stats(ctx));
  answer("export", (_params, ctx) => desk.export(ctx));
  answer("sweep", ({ last, wait }, ctx) => desk.sweep(count(last), wait === true, ctx));
  answer("setMode", ({ mode }, ctx) => desk.setMode(mode === "manual" ? "manual" : "automatic", ctx));
  // The daemon has checked them.
  answer("compress", (params, ctx) => desk.compress(params as CompressOrder, ctx));
  answer("decompress", ({ block }, ctx) => desk.decompress(text(block), ctx));
  answer("recompress", ({ block }, ctx) => desk.recompress(text(block), ctx));
  addPruningCommand({ bench, desk, teller, reload: () => bench.reload() });
}

function count(value: unknown): number | undefined {
  return typeof value === "number" && Number.isSafeInteger(value) && value > 0 ? value : undefined;
}

function text(value: unknown): string {
  if (typeof value === "string") return value;
  throw new AskRefused("invalid_params", "block is no text.");
}
