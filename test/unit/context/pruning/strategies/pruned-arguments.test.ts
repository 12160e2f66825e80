import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { expect, test } from "vitest";
import { recordData } from "../../../../../context/parts/recall/record.ts";
import { RecallRegistry } from "../../../../../context/parts/recall/registry.ts";
import { prunedArguments } from "../../../../../context/pruning/strategies/pruned-arguments.ts";
import { partial } from "../../../../helpers/partial.ts";
import { Branch } from "../branch.ts";

const gone = "g".repeat(300);
const whole = "w".repeat(300);
const call = (id: string, content: string) => ({ type: "toolCall", id, name: "write", arguments: { content } });

test("in a message with two calls only the removed arguments are recalled, also before pi has the edit", async () => {
  const branch = new Branch();
  const entryId = branch.message({ role: "assistant", content: [call("c1", gone), call("c2", whole)] });
  const record = {
    number: 7,
    part: "purgeErrors",
    tool: "write",
    tokens: 9,
    place: { kind: "entry", entryId },
  } as const;
  branch.add({
    type: "custom",
    customType: "pi-rpcd.recall",
    data: recordData("purgeErrors", [record]),
  });
  const content = [call("c1", "[content: 300 B pruned; recall r007]"), call("c2", whole)];
  const registry = new RecallRegistry();
  const recalled = async (pending?: readonly unknown[]) => {
    const { sessionManager } = branch.context;
    const getBranch = () => [...branch.entries];
    const ctx = partial<ExtensionContext>({ sessionManager: { ...sessionManager, getBranch } });
    return (await prunedArguments(registry, "r007", ctx, new Map(pending && [[entryId, pending]])))?.text;
  };
  expect(await recalled(content)).toBe(gone);
  branch.add({ type: "context_edit", targetId: entryId, replacement: { content } });
  expect(await recalled()).toBe(gone);
});
