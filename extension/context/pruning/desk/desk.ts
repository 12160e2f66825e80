import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { ErrorName } from "../../../../protocol/errors.ts";
import type {
  PruningChange,
  PruningExport,
  PruningInspection,
  PruningMode,
  PruningStats,
} from "../../../../protocol/pruning/report.ts";
import { deliver } from "../../../api/deliver.ts";
import { AskRefused } from "../../../engine-port.ts";
import type { Block, PruningBench } from "../bench.ts";
import { blockNumbersIn } from "../block-entries.ts";
import { PRUNING_OFF } from "../switch.ts";
import { exportOf } from "./export.ts";
import { bordersOf, inspectionOf } from "./inspection.ts";
import { OpenOperations } from "./open-operations.ts";

const maxFocus = 2_000;

/** A compression that a user has written. */
export interface UserCompression {
  readonly topic: string;
  readonly ranges: readonly { readonly startId: string; readonly endId: string; readonly summary: string }[];
}

/** What the parts of pruning do that have been asked for by a user. */
export interface DeskParts {
  readonly mode: {
    of(ctx: ExtensionContext): PruningMode;
    set(mode: PruningMode, ctx: ExtensionContext): void;
    /** Lets the model make one call, whatever the mode. */
    grant(ctx: ExtensionContext): void;
  };
  /** Ranges that could be compressed now. */
  candidates(ctx: ExtensionContext): readonly { startId: string; endId: string; tokens: number }[];
  /** Throws {@link AskRefused}. */
  compress(call: UserCompression, wait: boolean, ctx: ExtensionContext): PruningChange;
  /** Throws {@link AskRefused}. `undefined`: all strategies that are on. */
  sweep(last: number | undefined, wait: boolean, ctx: ExtensionContext): PruningChange;
  stats(ctx: ExtensionContext): PruningStats;
}

export interface CompressOrder {
  readonly focus?: string;
  readonly topic?: string;
  readonly ranges?: UserCompression["ranges"];
  readonly wait?: boolean;
}

/** `customType` of the message by which the model is asked to compress. */
export const COMPRESS_REQUEST = "pi-rpcd.compress";

/** Does what users ask of pruning, by commands and by methods: these give the same answers. All throw {@link AskRefused}. */
export class PruningDesk {
  readonly #bench: PruningBench;
  readonly #parts: DeskParts;
  readonly #open: OpenOperations;

  constructor(bench: PruningBench, parts: DeskParts) {
    this.#bench = bench;
    this.#parts = parts;
    this.#open = new OpenOperations(bench);
  }

  inspect(ctx: ExtensionContext): PruningInspection {
    this.#requireEnabled();
    return inspectionOf(this.#bench, this.#parts, ctx);
  }

  stats(ctx: ExtensionContext): PruningStats {
    this.#requireEnabled();
    return this.#parts.stats(ctx);
  }

  export(ctx: ExtensionContext): PruningExport {
    this.#requireEnabled();
    return exportOf(this.#bench, this.#parts, ctx);
  }

  setMode(mode: PruningMode, ctx: ExtensionContext): { mode: PruningMode } {
    this.#requireEnabled();
    const { notify } = this.#bench;
    if (this.#parts.mode.of(ctx) !== mode) {
      this.#parts.mode.set(mode, ctx);
      notify("pruning/changed", { cause: "mode", blocks: [], pruned: [], tokens: 0, mode });
    }
    return { mode };
  }

  modeOf(ctx: ExtensionContext): PruningMode {
    return this.#parts.mode.of(ctx);
  }

  sweep(last: number | undefined, wait: boolean, ctx: ExtensionContext): PruningChange {
    this.#requireOn(ctx);
    return this.#parts.sweep(last, wait, ctx);
  }

  compress({ focus, topic, ranges, wait = false }: CompressOrder, ctx: ExtensionContext): PruningChange {
    this.#requireOn(ctx);
    if (ranges !== undefined) {
      if (topic === undefined || topic.trim() === "") throw new AskRefused("invalid_params", "topic is missing.");
      if (focus !== undefined) throw new AskRefused("invalid_params", "focus is not for ranges.");
      return this.#parts.compress({ topic, ranges }, wait, ctx);
    }
    if (topic !== undefined) throw new AskRefused("invalid_params", "topic is for ranges alone.");
    this.#parts.mode.grant(ctx);
    this.#ask(focus);
    return { ...nothing, state: "asked" };
  }

  decompress(id: string, ctx: ExtensionContext): PruningChange {
    return this.#operate("decompress", id, ctx);
  }

  recompress(id: string, ctx: ExtensionContext): PruningChange {
    return this.#operate("recompress", id, ctx);
  }

  #operate(operation: "decompress" | "recompress", id: string, ctx: ExtensionContext): PruningChange {
    this.#requireOn(ctx);
    const { blocks, cacheRule } = this.#bench;
    const tree = blocks.on(ctx);
    const block = tree.find(id);
    if (block === undefined) throw missing(id, ctx);
    const hindrance = tree.hinders(operation, id);
    if (hindrance !== undefined) throw new AskRefused("block_not_restorable", hindrance, { block: id });
    const written = blocks.operate(operation, id, ctx);
    cacheRule.changed("pruning", block.entryIds);
    const change = { operation, block: id, tokens: freedBy(operation, block) };
    if (written === "soon") this.#open.add(change, ctx);
    else this.#open.tell(change);
    const changed = blocks.on(ctx).find(id) ?? block;
    return {
      ...nothing,
      state: written === "now" ? "done" : "waiting",
      blocks: [
        {
          id,
          state: changed.state.kind,
          ...bordersOf(block, this.#bench, ctx),
          tokensBefore: Math.round(block.tokensBefore),
          tokensAfter: Math.round(block.tokensAfter),
        },
      ],
      tokens: change.tokens,
    };
  }

  #ask(focus: string | undefined): void {
    const about =
      focus === undefined || focus.trim() === "" ? "" : ` Begin with this: ${focus.trim().slice(0, maxFocus)}`;
    const content = `The user asks you to compress the context now, by one call of the tool compress.${about}`;
    deliver(
      this.#bench.pi,
      { customType: COMPRESS_REQUEST, content: content.toWellFormed(), display: true },
      { deliverAs: "steer", triggerTurn: true, onAbort: "drop" },
    );
  }

  #requireEnabled(): void {
    if (!this.#bench.pruning().enabled) throw new AskRefused("pruning_disabled", PRUNING_OFF);
  }

  #requireOn(ctx: ExtensionContext): void {
    this.#requireEnabled();
    const off = this.#bench.off(ctx);
    if (off !== undefined) throw new AskRefused("pruning_disabled", off);
  }
}

const nothing = { state: "done", blocks: [], pruned: [], tokens: 0, notes: [] } satisfies PruningChange;

function freedBy(operation: "decompress" | "recompress", { tokensBefore, tokensAfter }: Block): number {
  const freed = Math.round(tokensBefore - tokensAfter);
  return operation === "recompress" ? freed : -freed;
}

/** A block of another branch is there, and cannot be had here. */
function missing(id: string, { sessionManager }: ExtensionContext): AskRefused {
  const number = Number(id.slice(1));
  const isElsewhere = sessionManager.getEntries().some((entry) => blockNumbersIn(entry).includes(number));
  const [name, words]: [ErrorName, string] = isElsewhere
    ? ["block_not_restorable", `${id} stands on another branch: its entries are not on this one.`]
    : ["block_not_found", `${id} does not exist.`];
  return new AskRefused(name, words, { block: id });
}
