import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
import { expect, test } from "vitest";
import { claimMemory, isLinkKept, releaseMemory } from "../../../extension/memory.ts";
import { unchecked } from "../../helpers/partial.ts";

/** The used part of pi's API: it throws when its life has ended. */
function life(): { readonly events: ExtensionAPI["events"]; end(): void } {
  let isOver = false;
  const emit = (): void => {
    if (isOver) throw new Error("stale");
  };
  return {
    events: unchecked({ emit }),
    end: () => {
      isOver = true;
    },
  };
}

test("a life continues with the memory of its predecessor, and never with that of one that still runs", () => {
  const [first, other, second, third] = [life(), life(), life(), life()];
  const memory = claimMemory(first);
  memory.link = { owner: "file:///helper.ts", statusKey: "key", command: "command" };
  expect(isLinkKept("file:///helper.ts")).toBe(true);
  expect(isLinkKept("file:///other.ts")).toBe(false);

  // Another session in the same process.
  const others = claimMemory(other);
  expect(others).not.toBe(memory);
  releaseMemory(others, true);

  releaseMemory(memory, false);
  expect(claimMemory(second)).toBe(memory);

  // A life that ended silently, or failed to load.
  second.end();
  expect(claimMemory(third)).toBe(memory);

  releaseMemory(memory, true);
  expect(isLinkKept("file:///helper.ts")).toBe(false);
  expect(claimMemory(life())).not.toBe(memory);
});
