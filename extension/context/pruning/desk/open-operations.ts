import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { PruningBench } from "../bench.ts";

interface Operation {
  readonly operation: "decompress" | "recompress";
  readonly block: string;
  /** That the next request has less; below 0: more. */
  readonly tokens: number;
}

const part = "pruning_operations";
const maxOpen = 1_000;

/** What was done to blocks while a run was on, and is told once it stands on the branch. */
export class OpenOperations {
  readonly #bench: PruningBench;
  #open: (Operation & { readonly sessionId: string })[] = [];

  constructor(bench: PruningBench) {
    this.#bench = bench;
    bench.on(part, "turn_start", (_event, ctx) => this.#look(ctx));
    bench.on(part, "agent_settled", (_event, ctx) => {
      this.#look(ctx);
      this.#open = [];
    });
  }

  add(operation: Operation, { sessionManager }: ExtensionContext): void {
    // Of what is done to a block the last holds.
    this.#open = this.#open.filter(({ block }) => block !== operation.block).slice(1 - maxOpen);
    this.#open.push({ ...operation, sessionId: sessionManager.getSessionId() });
  }

  tell({ operation, block, tokens }: Operation): void {
    this.#bench.notify("pruning/changed", { cause: operation, blocks: [block], pruned: [], tokens });
  }

  #look(ctx: ExtensionContext): void {
    if (this.#open.length === 0) return;
    const sessionId = ctx.sessionManager.getSessionId();
    const tree = this.#bench.blocks.on(ctx);
    this.#open = this.#open.filter((one) => {
      if (one.sessionId !== sessionId) return false;
      const done = one.operation === "decompress" ? "inactive" : "active";
      if (tree.find(one.block)?.state.kind !== done) return true;
      this.tell(one);
      return false;
    });
  }
}
