import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { PruningChanged } from "../../../protocol/pruning/notices.ts";
import type { PruningServices } from "../pruning-services.ts";
import type { BlocksRecord } from "../record.ts";
import type { Compressed } from "./compressor.ts";

type Made = Extract<Compressed, { kind: "made" }>;
type Host = Pick<PruningServices, "on" | "boundary" | "notify" | "blocks">;

const part = "compress";
/** Calls whose results are not written yet. */
const maxOpen = 256;
const mostHidden = 1_000;

/**
 * Tracks blocks from the call that makes them until the branch contains them, then notifies subscribers. The call's
 * result stores them; if another extension replaced its details, a separate entry does.
 */
export class StoredBlocks {
  readonly #host: Host;
  readonly #made = new Map<string, Made>();
  #open: Made[] = [];

  constructor(host: Host) {
    this.#host = host;
    host.on(part, "tool_execution_end", ({ toolCallId, isError }, ctx) => this.#ended(toolCallId, isError, ctx));
    // After the contributor of the blocks, which writes missing records.
    host.boundary.contribute(part, ({ ctx }) => {
      this.#look(ctx);
      return undefined;
    });
    host.on(part, "agent_settled", (_event, ctx) => {
      this.#look(ctx);
      this.#made.clear();
      this.#open = [];
    });
  }

  /** Records the blocks of a call that returned a result. */
  made(callId: string, made: Made): void {
    if (this.#made.size < maxOpen) this.#made.set(callId, made);
  }

  #ended(callId: string, isError: boolean, ctx: ExtensionContext): void {
    const made = this.#made.get(callId);
    this.#made.delete(callId);
    // Another extension turned the result into an error, so the model assumes that there is no block.
    if (made === undefined || isError) return;
    this.#host.blocks.store(made.record, ctx);
    this.#open = [...this.#open, made].slice(-maxOpen);
  }

  #look(ctx: ExtensionContext): void {
    if (this.#open.length === 0) return;
    const tree = this.#host.blocks.on(ctx);
    const isThere = ({ blocks }: BlocksRecord): boolean => blocks.every(({ id }) => tree.find(id) !== undefined);
    const there = this.#open.filter(({ record }) => isThere(record));
    this.#open = this.#open.filter((made) => !there.includes(made));
    for (const made of there) this.#host.notify("pruning/changed", changeOf(made));
  }
}

function changeOf({ record, hidden }: Made): PruningChanged {
  const tokens = record.blocks.reduce((sum, { tokensBefore, tokensAfter }) => sum + tokensBefore - tokensAfter, 0);
  return {
    cause: "compress",
    blocks: record.blocks.map(({ id }) => id),
    pruned: hidden.filter((id) => id.startsWith("m")).slice(0, mostHidden),
    tokens: Math.round(tokens),
  };
}
