import { expect, test } from "vitest";
import { PruningNotifier } from "../../../../context/pruning/notifier.ts";
import type { HostPort } from "../../../../extension/engine-port.ts";
import { defaultPruning, type PruningConfig } from "../../../../protocol/pruning/config.ts";
import type { PruningChanged } from "../../../../protocol/pruning/notices.ts";

const change: PruningChanged = { cause: "compress", blocks: ["b3"], pruned: ["m004", "m005"], tokens: 1_200 };

function stand(config: Partial<PruningConfig>) {
  const shown: string[] = [];
  const told: string[] = [];
  const logged: unknown[] = [];
  const host = {
    notify: (name: string) => void told.push(name),
    debug: (_part: string, facts: unknown) => void logged.push(facts),
    context: () => ({ ui: { notify: (words: string) => void shown.push(words) } }),
  } as unknown as HostPort;
  return { teller: new PruningNotifier(host, () => ({ ...defaultPruning, ...config })), shown, told, logged };
}

test("changes are reported and shown according to `notification`", () => {
  const levels = (["off", "minimal", "detailed"] as const).map((notification) => {
    const { teller, shown, told } = stand({ notification });
    teller.notify("pruning/changed", change);
    teller.notify("pruning/nudged", { kind: "turn", usage: 0.5, tokens: 100 });
    teller.notify("pruning/degraded", { reason: "breaker", message: "It rests." });
    return { told: told.length, shown };
  });
  expect(levels).toEqual([
    { told: 2, shown: [] },
    { told: 3, shown: ["Context: compressed b3, about 1200 tokens less.", "Context: It rests."] },
    {
      told: 3,
      shown: [
        "Context: compressed b3, m004, m005, about 1200 tokens less.",
        "Context: the model was reminded (turn) at 100 tokens.",
        "Context: It rests.",
      ],
    },
  ]);
});

test("a command's answer is not shown twice, and is sent to subscribers", () => {
  const { teller, shown, told } = stand({});
  expect(teller.answering(() => teller.notify("pruning/changed", change))).toBeUndefined();
  expect(() =>
    teller.answering(() => {
      throw new Error("no");
    }),
  ).toThrow("no");
  expect([told.length, shown.length]).toEqual([1, 0]);
  teller.notify("pruning/changed", change);
  expect(shown).toHaveLength(1);
});

test("debug lines are written only if enabled, and are bounded", () => {
  const off = stand({});
  off.teller.debug("pruning", { asked: "inspect" });
  off.teller.notify("pruning/changed", change);
  expect(off.logged).toEqual([]);
  const on = stand({ debug: true, notification: "off" });
  on.teller.notify("pruning/changed", change);
  on.teller.debug("pruning", { much: "x".repeat(100_000) });
  expect(on.logged).toEqual([{ told: "pruning/changed", ...change }, { cut: expect.any(String) }]);
  expect(JSON.stringify(on.logged[1]).length).toBeLessThan(8_192);
});
