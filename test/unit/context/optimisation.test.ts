import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { expect, test } from "vitest";
import { optimisation } from "../../../context/parts/optimisation/optimisation.ts";
import { fakeHost } from "./fake-host.ts";

test("a part that cannot be installed is reported, and does not affect other parts", () => {
  const host = fakeHost({} as ExtensionContext);
  const added = new Set<string>();
  optimisation({
    ...host,
    onSession: (_begun, part) => void added.add(part),
    on: (part) => {
      if (part === "cost") throw new Error("No place.");
      added.add(part);
    },
    pipeline: Object.assign(host.pipeline, {
      use: (_hook: string, _stage: string, _run: unknown, part?: string) => void added.add(part ?? ""),
    }),
  });
  expect(host.faults.map(({ where }) => where)).toContain("parts");
  expect(host.notices).toContainEqual({
    name: "optimisation/degraded",
    data: { part: "cost", reason: "The part could not be added: No place." },
  });
  expect(added).toContain("compaction");
});
