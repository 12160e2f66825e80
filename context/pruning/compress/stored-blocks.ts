import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { PruningChanged } from "../../../protocol/pruning/notices.ts";
import type { PruningContext } from "../pruning-context.ts";
import type { BlocksRecord } from "../record.ts";
import type { Compressed } from "./compressor.ts";

type Made = Extract<Compressed, { kind: "made" }>;
type Host = Pick<PruningContext, "on" | "boundary" | "notify" | "blocks">;

const part = "compress";
/** Calls whose results are not written yet. */
const maxOpen = 256;
const mostHidden = 1_000;

/**
 * Follows blocks from the call that makes them until they stand on the branch, which is told. They stand there by the call's
 * result; where another extension has replaced its details they are written into an entry of their own.
 */
export class StoredBlocks {
  readonly #host: Host;
  readonly #made = new Map<string, Made>();
  #open: Made[] = [];

  constructor(host: Host) {
    this.#host = host;
    host.on(part, "tool_execution_end", ({ toolCallId, isError }, ctx) => this.#ended(toolCallId, isError, ctx));
    // Behind the blocks' own contributor, which writes what is missing.
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

  /** The call is answered by these. */
  made(callId: string, made: Made): void {
    if (this.#made.size < maxOpen) this.#made.set(callId, made);
  }

  #ended(callId: string, isError: boolean, ctx: ExtensionContext): void {
    const made = this.#made.get(callId);
    this.#made.delete(callId);
    // Another extension has made an error of it: the model believes that there is no block.
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

/** What subscribers are told of blocks. */
function changeOf({ record, hidden }: Made): PruningChanged {
  const tokens = record.blocks.reduce((sum, { tokensBefore, tokensAfter }) => sum + tokensBefore - tokensAfter, 0);
  return {
    cause: "compress",
    blocks: record.blocks.map(({ id }) => id),
    pruned: hidden.filter((id) => id.startsWith("m")).slice(0, mostHidden),
    tokens: Math.round(tokens),
  };
}
