import type { Places } from "./engine-port.ts";

/**
 * Answers in every pi `optimisation/inspect`, and which tools there are. Where no part is on, nothing is loaded before somebody
 * asks.
 */
export function inspecting(places: Places): void {
  places.answer("optimisation/inspect", async (_params, ctx) => {
    const { bareInspection } = await import("../context/parts/optimisation/inspection.ts");
    return bareInspection(places, ctx);
  });
  places.answer("tools", () => ({ tools: places.pi.getAllTools().map(({ name }) => name) }));
}
