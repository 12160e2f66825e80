import type { PruningBench } from "./bench.ts";

type Bench = Pick<PruningBench, "pipeline" | "pruning" | "off" | "usage" | "blocks" | "mode" | "debug">;

/** A line of the log for each request, where the configuration wants them. */
export function addRequestLog(bench: Bench): void {
  bench.pipeline.use(
    "context_with_system",
    "offer",
    (messages, ctx) => {
      if (!bench.pruning().debug) return;
      const off = bench.off(ctx);
      const { active } = bench.blocks.on(ctx);
      bench.debug("pruning", {
        request: messages.length,
        ...(off === undefined ? {} : { off }),
        mode: bench.mode.of(ctx),
        blocks: active.length,
        usage: bench.usage(ctx) ?? null,
      });
    },
    "pruning-log",
  );
}
