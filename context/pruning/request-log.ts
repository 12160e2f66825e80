import type { PruningServices } from "./pruning-services.ts";

type Host = Pick<PruningServices, "pipeline" | "pruning" | "off" | "usage" | "blocks" | "mode" | "debug">;

/** Logs a line for each request if `pruning.debug` is on. */
export function addRequestLog(host: Host): void {
  host.pipeline.use(
    "context_with_system",
    "offer",
    (messages, ctx) => {
      if (!host.pruning().debug) return;
      const off = host.off(ctx);
      const { active } = host.blocks.on(ctx);
      host.debug("pruning", {
        request: messages.length,
        ...(off === undefined ? {} : { off }),
        mode: host.mode.of(ctx),
        blocks: active.length,
        usage: host.usage(ctx) ?? null,
      });
    },
    "pruning-log",
  );
}
