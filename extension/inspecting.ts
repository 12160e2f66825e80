import type { Places } from "./engine-port.ts";

/** Answers `optimisation/inspect` in every pi. Where no part is on, nothing is loaded before somebody asks. */
export function inspecting(places: Places): void {
  places.answer("optimisation/inspect", async (_params, ctx) => {
    const { bareInspection } = await import("./context/optimisation/inspection.ts");
    return bareInspection(places, ctx);
  });
}
