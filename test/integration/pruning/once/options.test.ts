import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { PruningOptions } from "../../../../protocol/pruning/options.ts";
import { call } from "../../../../provider/reply.ts";
import { startProvider } from "../../../../provider/server.ts";
import { startPi } from "../../extension/driver.ts";
import { entriesOf, Model } from "../../optimisation/model.ts";

const quiet: PruningOptions = { enabled: true, minContext: 0.9, maxContext: 0.95, protectRecentTurns: 1 };
/** With this many expected requests each change pays for the cache. */
const worthwhile = { cache: { enabled: true, minBatchTokens: 1_000 }, masking: { expectedRequests: 1_000 } };
const long = { text: "words of an output\n", times: 1_000 };
const furnish = ({ cwd }: { readonly cwd: string }): void =>
  writeFileSync(join(cwd, "notes.txt"), "words of a file that is read again\n".repeat(400));
const compress = (startId: string, endId: string, summary: string) =>
  call("compress", { topic: "Looking", ranges: [{ startId, endId, summary }] });

test("reconfigured options change what a running pi does next: placeholders, what blocks keep, strategies in manual mode", async () => {
  await using provider = await startProvider();
  await using pi = await startPi({ provider, furnish, pruning: quiet, optimisation: worthwhile, after: ["emitting"] });
  const model = new Model(pi, provider);
  const configure = (pruning: PruningOptions) =>
    pi.send({ kind: "configure", parts: pi.partsOf(worthwhile, { ...quiet, ...pruning }) });
  const blockOf = () => {
    const [details] = entriesOf(pi)
      .flatMap(({ message }) =>
        message?.role === "toolResult" && message.details !== undefined ? [message.details] : [],
      )
      .slice(-1);
    return (details as { blocks?: readonly { body: unknown; kept: readonly { text: string }[] }[] }).blocks?.[0];
  };

  await model.calls(call("emit", long), call("emit", { ...long, times: 900 }));
  await configure({ compress: { placeholderMode: "strict" } });
  const strict = await model.calls(compress("m001", "m002", "Found (b7)."), compress("m001", "m002", "Found (b7)."));
  for (const told of strict) expect(told).toContain("(b7) is not in m001–m002.");
  await configure({ compress: { placeholderMode: "lenient", protectUserMessages: true } });
  const [lenient] = await model.calls(compress("m001", "m002", "Found (b7)."));
  expect(lenient).toContain("b1 stands for m001–m002");
  expect(blockOf()?.body).toEqual([{ text: "Found compressed b7." }]);
  expect(blockOf()?.kept.map(({ text }) => text)).toEqual(["Go on."]);

  const same = call("read", { path: "notes.txt" });
  const pruned = () => pi.frames("notice").filter(({ data }) => "cause" in data && data.cause === "strategies").length;
  await configure({ manualMode: { enabled: true, automaticStrategies: false } });
  const short = ["one", "two", "three"].map((text) => call("emit", { text }));
  await model.run(same, same, ...short);
  expect(pruned()).toBe(0);
  await configure({ manualMode: { enabled: true, automaticStrategies: true } });
  await model.run(...short);
  expect(pruned()).toBe(1);
});
