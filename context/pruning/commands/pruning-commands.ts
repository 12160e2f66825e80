import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { AskRefused } from "../../../extension/engine-port.ts";
import type { ErrorName } from "../../../protocol/errors.ts";
import type {
  PruningChange,
  PruningExport,
  PruningInspection,
  PruningMode,
  PruningStats,
} from "../../../protocol/pruning/report.ts";
import { blockNumbersIn } from "../block-entries.ts";
import type { Compressor } from "../compress/compressor.ts";
import type { Block, Mode, PruningServices } from "../pruning-services.ts";
import type { ManualPrune } from "../strategies/strategies.ts";
import { PRUNING_OFF } from "../switch.ts";
import { bordersOf, exportOf } from "./inspection.ts";
import type { OpenChanges } from "./open-changes.ts";
import { compressed, type UserCompression } from "./user-compression.ts";

const maxFocus = 2_000;

/** The parts of pruning that the commands control. */
export interface CommandParts {
  readonly mode: Mode;
  readonly strategies: ManualPrune;
  readonly compressor: Compressor;
  readonly stats: (ctx: ExtensionContext) => PruningStats;
  readonly inspect: (ctx: ExtensionContext) => PruningInspection;
  /** Block changes that subscribers are notified of. */
  readonly changes: OpenChanges;
}

type CommandNeeds = Pick<PruningServices, "blocks" | "ids" | "pruning" | "off" | "notify" | "deliver">;

export interface CompressOrder {
  readonly focus?: string;
  readonly topic?: string;
  readonly ranges?: UserCompression["ranges"];
  readonly wait?: boolean;
}

/** `customType` of the message that asks the model to compress. */
const COMPRESS_REQUEST = "pi-rpcd.compress";

/** The operations of the command `/dcp` and the methods `pruning/…`. All throw {@link AskRefused}. */
export class PruningCommands {
  readonly #host: CommandNeeds;
  readonly #parts: CommandParts;

  constructor(host: CommandNeeds, parts: CommandParts) {
    this.#host = host;
    this.#parts = parts;
  }

  inspect(ctx: ExtensionContext): PruningInspection {
    this.#requireEnabled();
    return this.#parts.inspect(ctx);
  }

  stats(ctx: ExtensionContext): PruningStats {
    this.#requireEnabled();
    return this.#parts.stats(ctx);
  }

  export(ctx: ExtensionContext): PruningExport {
    this.#requireEnabled();
    return exportOf(this.#host, this.#parts.mode.of(ctx), ctx);
  }

  modeOf(ctx: ExtensionContext): PruningMode {
    return this.#parts.mode.of(ctx);
  }

  setMode(mode: PruningMode, ctx: ExtensionContext): { mode: PruningMode } {
    this.#requireEnabled();
    if (this.#parts.mode.set(mode, ctx)) {
      this.#host.notify("pruning/changed", { cause: "mode", blocks: [], pruned: [], tokens: 0, mode });
    }
    return { mode };
  }

  sweep(last: number | undefined, wait: boolean, ctx: ExtensionContext): PruningChange {
    this.#requireOn(ctx);
    return this.#parts.strategies.sweep(last, wait, ctx);
  }

  compress({ focus, topic, ranges, wait = false }: CompressOrder, ctx: ExtensionContext): PruningChange {
    this.#requireOn(ctx);
    if (ranges !== undefined) {
      if (topic === undefined || topic.trim() === "") throw new AskRefused("invalid_params", "topic is missing.");
      if (focus !== undefined) throw new AskRefused("invalid_params", "focus is not for ranges.");
      if (!ctx.isIdle()) requireWait(wait);
      return this.#store({ topic, ranges }, ctx);
    }
    if (topic !== undefined) throw new AskRefused("invalid_params", "topic is for ranges alone.");
    if (this.#host.pruning().compress.permission === "deny") {
      throw new AskRefused("pruning_disabled", "pruning.compress.permission is deny: the model may not compress.");
    }
    this.#ask(focus);
    this.#parts.mode.grant();
    return { ...nothing, state: "asked" };
  }

  decompress(id: string, ctx: ExtensionContext): PruningChange {
    return this.#operate("decompress", id, ctx);
  }

  recompress(id: string, ctx: ExtensionContext): PruningChange {
    return this.#operate("recompress", id, ctx);
  }

  #store(call: UserCompression, ctx: ExtensionContext): PruningChange {
    const { blocks } = this.#host;
    const { record, notes, pruned, borders } = compressed(this.#host, this.#parts.compressor, call, ctx);
    const tokens = record.blocks.reduce((sum, block) => sum + freedBy("recompress", block), 0);
    const written = blocks.store(record, ctx);
    this.#parts.changes.add(
      { cause: "compress", blocks: record.blocks.map(({ id }) => id), pruned, tokens },
      written,
      ctx,
    );
    return {
      ...nothing,
      state: written === "now" ? "done" : "waiting",
      blocks: record.blocks.map(({ id, tokensBefore, tokensAfter }, at) => ({
        id,
        state: "active",
        ...borders[at],
        tokensBefore: Math.round(tokensBefore),
        tokensAfter: Math.round(tokensAfter),
      })),
      tokens,
      notes,
    };
  }

  #operate(operation: "decompress" | "recompress", id: string, ctx: ExtensionContext): PruningChange {
    this.#requireOn(ctx);
    const { blocks } = this.#host;
    const tree = blocks.ahead(ctx);
    const block = tree.find(id);
    if (block === undefined) throw missing(id, ctx);
    const hindrance = tree.hinders(operation, id);
    if (hindrance !== undefined) throw new AskRefused("block_not_restorable", hindrance, { block: id });
    const written = blocks.operate(operation, id, ctx);
    const tokens = freedBy(operation, block);
    this.#parts.changes.add({ cause: operation, blocks: [id], pruned: [], tokens }, written, ctx);
    const state = operation === "decompress" ? "inactive" : "active";
    const { tokensBefore, tokensAfter } = block;
    return {
      ...nothing,
      state: written === "now" ? "done" : "waiting",
      blocks: [
        {
          id,
          state: written === "now" ? state : (blocks.on(ctx).find(id) ?? block).state.kind,
          ...bordersOf(block, this.#host, ctx),
          tokensBefore: Math.round(tokensBefore),
          tokensAfter: Math.round(tokensAfter),
        },
      ],
      tokens,
    };
  }

  #ask(focus: string | undefined): void {
    const wish = focus?.trim().slice(0, maxFocus) ?? "";
    const about = wish === "" ? "" : ` Begin with this: ${wish}`;
    const content = `The user asks you to compress the context now, by one call of the tool compress.${about}`;
    this.#host.deliver(
      { customType: COMPRESS_REQUEST, content: content.toWellFormed(), display: true },
      { deliverAs: "steer", triggerTurn: true, onAbort: "drop" },
    );
  }

  #requireEnabled(): void {
    if (!this.#host.pruning().enabled) throw new AskRefused("pruning_disabled", PRUNING_OFF);
  }

  #requireOn(ctx: ExtensionContext): void {
    this.#requireEnabled();
    const off = this.#host.off(ctx);
    if (off !== undefined) throw new AskRefused("pruning_disabled", off);
  }
}

const nothing = { state: "done", blocks: [], pruned: [], tokens: 0, notes: [] } satisfies PruningChange;

function requireWait(wait: boolean): void {
  if (!wait) throw new AskRefused("session_busy", "The session runs; with wait it is done at the run's next boundary.");
}

function freedBy(
  operation: "decompress" | "recompress",
  { tokensBefore, tokensAfter }: Pick<Block, "tokensBefore" | "tokensAfter">,
): number {
  const freed = Math.round(tokensBefore - tokensAfter);
  return operation === "recompress" ? freed : -freed;
}

/** The error for an unknown block; a block of another branch exists but cannot be restored here. */
function missing(id: string, { sessionManager }: ExtensionContext): AskRefused {
  const number = Number(id.slice(1));
  const isElsewhere = sessionManager.getEntries().some((entry) => blockNumbersIn(entry).includes(number));
  const [name, words]: [ErrorName, string] = isElsewhere
    ? ["block_not_restorable", `${id} is on another branch; its entries are not on this one.`]
    : ["block_not_found", `${id} does not exist.`];
  return new AskRefused(name, words, { block: id });
}
