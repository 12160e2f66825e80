import type { HostPort } from "./engine-port.ts";

/**
 * Answers `optimisation/inspect` and lists the tools, in every pi. While no part is active, its module is loaded on the
 * first request.
 */
export function inspectionPart(host: HostPort): void {
  host.answer("optimisation/inspect", async (_params, ctx) => {
    const { bareInspection } = await import("../context/parts/optimisation/inspection.ts");
    return bareInspection(host, ctx);
  });
  host.answer("tools", () => ({ tools: host.pi.getAllTools().map(({ name }) => name) }));
}
