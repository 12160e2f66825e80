import { expect, test } from "vitest";
import type { PruningOptions } from "../../../protocol/pruning/options.ts";
import type { LogEntry } from "../../../provider/log.ts";
import { answer, call } from "../../../provider/reply.ts";
import { startProvider } from "../../../provider/server.ts";
import { type PiOptions, startPi } from "../extension/driver.ts";
import { entriesOf, Model } from "../optimisation/model.ts";

/** All visible traces of pruning, including reminders. */
const eager: PruningOptions = { enabled: true, minContext: 0, maxContext: 1_000, nudgeForce: "strong" };
const models = [{ id: "model" }, { id: "model-2" }];

function isPruned({ body }: LogEntry): boolean {
  const text = JSON.stringify(body);
  const seen = ["dcp-", "context_pruning"].filter((word) => text.includes(word));
  if (seen.length === 1) throw new Error(`Half of it is there: ${seen[0]}`);
  return seen.length === 2;
}

interface Case extends Omit<PiOptions, "provider"> {
  readonly why: string;
  /** The tool `compress` that the model has. */
  readonly tool: RegExp | undefined;
  readonly told?: string;
}

const cases: readonly Case[] = [
  { why: "the tool is not active", flags: ["--tools", "read,bash"], tool: undefined },
  {
    why: "another extension has the tool",
    after: ["own-compress"],
    tool: /Another extension's\./,
    told: "Another extension has a tool named compress.",
  },
  { why: "another extension forces the whole prompt", after: ["forced-prompt"], tool: /Replaces closed ranges/ },
];

test.for(cases)("if $why, no request, record or tool answer has a trace of pruning", async (one) => {
  const { why: _why, tool, told, ...options } = one;
  await using provider = await startProvider();
  await using pi = await startPi({ pruning: eager, models, ...options, provider });
  const degraded = pi.frames("notice").flatMap((notice) => (notice.name === "pruning/degraded" ? [notice.data] : []));
  const model = new Model(pi, provider);
  const calls =
    tool === undefined
      ? []
      : [call("compress", { topic: "All", ranges: [{ startId: "m001", endId: "m001", summary: "x" }] })];
  const requests = await model.run(call("bash", { command: "seq 1 2000" }), ...calls);
  expect(requests.map(isPruned)).toEqual(requests.map(() => false));
  const declared = (requests[0]?.body["tools"] ?? []) as readonly { function: { name: string; description: string } }[];
  const found = declared.find((one) => one.function.name === "compress")?.function.description;
  if (tool === undefined) expect(found).toBeUndefined();
  else expect(found).toMatch(tool);
  const types = entriesOf(pi).map(({ customType }) => customType);
  expect(types.filter((type) => type?.startsWith("pi-rpcd.") === true)).toEqual([]);
  const results = (requests.at(-1)?.messages ?? []).flatMap(({ toolResults }) => toolResults.map(({ text }) => text));
  if (told !== undefined) expect(results.at(-1)).toBe("Theirs.");
  else if (tool !== undefined) expect(results.at(-1)).toBe("Pruning is off for this session.");
  expect(degraded).toEqual(told === undefined ? [] : [{ reason: "tool_conflict", message: told }]);
});

test("pruning follows the model and the configuration from one request to the next", async () => {
  await using provider = await startProvider();
  const pruning: PruningOptions = { ...eager, models: { "scripted/model-2": { enabled: false } } };
  await using pi = await startPi({ provider, models, pruning });
  const seen: boolean[] = [];
  let settled = 0;
  const ask = async (): Promise<void> => {
    provider.add(answer("Done."));
    await pi.rpc({ type: "prompt", message: "Go on." });
    await pi.settled(++settled);
    seen.push(isPruned(provider.requests.at(-1) as LogEntry));
  };
  await ask();
  await pi.rpc({ type: "set_model", provider: "scripted", modelId: "model-2" });
  await ask();
  await pi.rpc({ type: "set_model", provider: "scripted", modelId: "model" });
  await ask();
  await pi.send({ kind: "configure", parts: pi.partsOf({}, { ...pruning, enabled: false }) });
  await ask();
  await pi.send({ kind: "configure", parts: pi.partsOf({}, pruning) });
  await ask();
  expect(seen).toEqual([true, false, true, false, true]);
});
