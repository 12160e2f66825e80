import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { expect, test } from "vitest";
import { optimisation } from "../../../context/parts/optimisation/optimisation.ts";
import { fakePlaces } from "./fake-host.ts";

test("a part that cannot be put into its place is told, and costs no other part", () => {
  const places = fakePlaces({} as ExtensionContext);
  const added = new Set<string>();
  optimisation({
    ...places,
    onSession: (_begun, part) => void added.add(part),
    on: (part) => {
      if (part === "cost") throw new Error("No place.");
      added.add(part);
    },
    pipeline: Object.assign(places.pipeline, {
      use: (_hook: string, _stage: string, _run: unknown, part?: string) => void added.add(part ?? ""),
    }),
  });
  expect(places.faults.map(({ where }) => where)).toContain("parts");
  expect(places.notices).toContainEqual({
    name: "optimisation/degraded",
    data: { part: "cost", reason: "It could not be put into its place: No place." },
  });
  expect(added).toContain("compaction");
});
