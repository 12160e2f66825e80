import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { closedRange, visibleIn } from "../../../../bench/lib/pruning/compressor.ts";
import { PrefixWatch } from "../../../../bench/lib/pruning/payload.ts";
import { code } from "../../../../bench/lib/traces/words.ts";
import type { LogEntry } from "../../../../provider/log.ts";
import { type AnswerReply, answer, call, type Reply } from "../../../../provider/reply.ts";
import { startProvider } from "../../../../provider/server.ts";
import { Random } from "../../../soak/random.ts";
import { type Pi, startPi } from "../../extension/driver.ts";

/** One run, in which the model gives these answers. Returns its requests. */
async function run(pi: Pi, model: Model, reply: (request: LogEntry) => Reply): Promise<readonly LogEntry[]> {
  model.reply = reply;
  model.requests = [];
  pi.log.forget("hello");
  await pi.rpc({ type: "prompt", message: "Go on." });
  await pi.settled();
  return model.requests;
}

interface Model {
  reply: (request: LogEntry) => Reply;
  requests: LogEntry[];
}

const answering = (model: Model) => (request: LogEntry) => {
  model.requests.push(request);
  return model.reply(request);
};

/** Reads other lines of the file with each answer, and finally says something. */
function readings(count: number): () => AnswerReply {
  let answers = 0;
  return () => {
    answers += 1;
    return answers < count
      ? answer(call("read", { path: "file.ts", offset: answers, limit: 10 }))
      : answer("It is done.");
  };
}

function isReminded({ messages }: LogEntry): boolean {
  return messages.at(-1)?.texts.at(-1)?.includes("<dcp-system-reminder>") === true;
}

/** Where in a run the reminders are. The first request's is a turn reminder: its tokens are not counted yet. */
function remindersOf(requests: readonly LogEntry[]): readonly number[] {
  return requests.flatMap((request, at) => (at > 0 && isReminded(request) ? [at] : []));
}

function gaps(places: readonly number[]): readonly number[] {
  return places.slice(1).map((place, at) => place - (places[at] ?? 0));
}

const length = 60;
const lines = ({ cwd }: { readonly cwd: string }): void =>
  writeFileSync(join(cwd, "file.ts"), code(new Random(3), 40_000));

test("reminders above the limit never come faster than allowed, whether the model obeys them, fails at them or ignores them", async () => {
  const model: Model = { reply: readings(1), requests: [] };
  await using provider = await startProvider({ otherwise: answering(model) });
  // The incompressible part is above the limit: each request is a reason for a reminder.
  const compress = { minRangeTokens: 0, minSavings: 0 };
  const limits = { maxContext: 1_000, minContext: 0, protectRecentTurns: 1 };
  await using pi = await startPi({ provider, furnish: lines, pruning: { enabled: true, compress, ...limits } });

  // It compresses whenever it is told to: other tools were reported to compress in a row.
  const next = readings(length);
  let made = 0;
  const obeyed = await run(pi, model, (request) => {
    const range = isReminded(request)
      ? closedRange(visibleIn(request), { takesBlocks: false, spare: 2, summary: "It was read." })
      : undefined;
    if (range === undefined) return next();
    made += 1;
    return answer(call("compress", { topic: `Reads ${made}`, ranges: [range] }));
  });
  expect(made).toBeGreaterThanOrEqual(3);
  expect(remindersOf(obeyed).length).toBeGreaterThanOrEqual(made);
  expect(Math.min(...gaps(remindersOf(obeyed)))).toBeGreaterThanOrEqual(5);

  // It fails each time: reminders become rarer, and then stop.
  await pi.replaceSession();
  const more = readings(length);
  const failed = await run(pi, model, (request) =>
    isReminded(request)
      ? answer(
          call("compress", { topic: "Reads", ranges: [{ startId: "m12x", endId: "m13", summary: "It was read." }] }),
        )
      : more(),
  );
  const [first = 0, second = 0, third = 0, ...others] = gaps(remindersOf(failed));
  expect(first).toBeGreaterThanOrEqual(10);
  expect(second).toBeGreaterThanOrEqual(20);
  // After three failures in a row: the breaker.
  expect(third === 0 || third >= 20).toBe(true);
  expect(others).toEqual([]);
  const degraded = pi.frames("notice").filter(({ name }) => name === "pruning/degraded");
  expect(degraded.map(({ data }) => data)).toMatchObject([{ reason: "breaker" }]);

  // It ignores reminders.
  await pi.replaceSession();
  const ignored = remindersOf(await run(pi, model, readings(length)));
  expect(ignored.length).toBeGreaterThanOrEqual(3);
  expect(Math.min(...gaps(ignored))).toBeGreaterThanOrEqual(5);
});

test("a hundred requests that remove nothing change no total, and strategies do not give up the cache for each output", async () => {
  const model: Model = { reply: readings(1), requests: [] };
  await using provider = await startProvider({ otherwise: answering(model), warming: "aside" });
  await using pi = await startPi({
    ...{ provider, furnish: lines, pruning: { enabled: true, compress: { minRangeTokens: 0 }, protectRecentTurns: 1 } },
    optimisation: { cache: { minBatchTokens: 2_000 } },
    models: [{ id: "model-1", contextWindow: 1_000_000 }],
  });
  // Every other read repeats an earlier one.
  let reads = 0;
  const repeating = (request: LogEntry): Reply => {
    reads += 1;
    const range = closedRange(visibleIn(request), { takesBlocks: false, spare: 2, summary: "It was read." });
    if (reads === 30 && range !== undefined) return answer(call("compress", { topic: "Reads", ranges: [range] }));
    if (reads === 100) return answer("It is done.");
    return answer(call("read", { path: "file.ts", offset: reads % 2 === 0 ? reads : 1, limit: 60 }));
  };
  const requests = await run(pi, model, repeating);
  const watch = new PrefixWatch();
  for (const [at, request] of requests.entries()) watch.take(request, at === 30);
  const broken = watch.counts.requests - watch.counts.same;

  const stats = () => pi.send<Record<string, unknown>>({ kind: "ask", about: "pruning/stats", params: {} });
  const { removed, blocks, strategies, cache } = await stats();
  expect(blocks).toHaveLength(1);
  // Many outputs are removed, in few batches.
  const gone = Object.values(strategies as Record<string, { count: number }>).reduce(
    (sum, { count }) => sum + count,
    0,
  );
  expect(gone).toBeGreaterThanOrEqual(20);
  expect(broken).toBeLessThanOrEqual(gone / 3);
  await run(pi, model, readings(100));
  expect(await stats()).toMatchObject({ removed, blocks, strategies, cache });
});
