import { expect, test } from "vitest";
import { OpenChanges } from "../../../../context/pruning/commands/open-changes.ts";
import { PruningCommands } from "../../../../context/pruning/commands/pruning-commands.ts";
import type { PruningServices } from "../../../../context/pruning/pruning-services.ts";
import { defaultPruning } from "../../../../protocol/pruning/config.ts";
import { partial } from "../../../helpers/partial.ts";
import { fakeHost } from "../fake-host.ts";
import { Branch, blockOf, blocksOf } from "./branch.ts";

test("a pending change can be cancelled in the same run, and a completed one is refused", () => {
  const branch = new Branch();
  const users = Array.from({ length: 4 }, (_, at) => branch.user(`Message ${at}.`));
  branch.compress("T", blockOf("b1", users.slice(1, 3), "A"));
  branch.isIdle = false;
  const host = fakeHost(branch.context);
  const services = partial<PruningServices>({
    ...host,
    pruning: () => ({ ...defaultPruning, enabled: true }),
    off: () => undefined,
    entries: { need: () => {} },
    recall: { need: () => {}, addSource: () => {} },
    ids: { idOf: () => undefined },
    cacheRule: { changed: () => {} },
  });
  const blocks = blocksOf(services);
  const changes = new OpenChanges({ ...services, blocks });
  const commands = new PruningCommands({ ...services, blocks }, partial({ changes }));
  const ctx = branch.context;
  expect(() => commands.recompress("b1", ctx)).toThrow("b1 is active.");
  expect(commands.decompress("b1", ctx)).toMatchObject({ state: "waiting", blocks: [{ id: "b1", state: "active" }] });
  expect(() => commands.decompress("b1", ctx)).toThrow("b1 is not active.");
  expect(commands.recompress("b1", ctx)).toMatchObject({ state: "waiting", blocks: [{ id: "b1", state: "active" }] });
  const written = { hook: "turn_end", state: { entries: [], continue: false }, ctx };
  expect(host.boundary.write(written as unknown as Parameters<typeof host.boundary.write>[0])).toBeUndefined();
  expect(blocks.on(ctx).find("b1")?.state.kind).toBe("active");
  expect(host.faults).toEqual([]);
});
