import { pino } from "pino";
import { describe, expect, test } from "vitest";
import { createValidator } from "../../../protocol/validation.ts";
import type { RpcResponse } from "../../../protocol/wire.ts";
import { answerText, keepText, wholeText } from "../../../server/rpc/answer-text.ts";
import { createDispatcher } from "../../../server/rpc/dispatcher.ts";
import { fakeCore } from "../../helpers/edge.ts";

const log = pino({ level: "silent" });

/** The answer to a batch of calls of `rpc.discover`, each of which returns `result`; `last` is another method. */
async function batch(calls: number, result: () => object, maxBatchAnswerBytes?: number, last?: string) {
  const { handlers } = fakeCore({ "rpc.discover": result });
  const limits = maxBatchAnswerBytes === undefined ? {} : { maxBatchAnswerBytes };
  const dispatcher = createDispatcher({ handlers, validator: createValidator(), log, limits });
  const requests = Array.from({ length: calls }, (_, id) => ({ jsonrpc: "2.0", id, method: "rpc.discover" }));
  if (last !== undefined) requests.push({ jsonrpc: "2.0", id: calls, method: last });
  const answer = await dispatcher.converse(undefined, undefined).receive(Buffer.from(JSON.stringify(requests)));
  return answer as readonly RpcResponse[];
}

describe("the answers to a batch", () => {
  test("are bounded together: those above the limit are too_large with their own ids, and small ones are still sent", async () => {
    let calls = 0;
    const result = () => ({ openrpc: "x".repeat([20_000, 20_000, 30_000, 10_000][calls++] as number) });
    const answer = await batch(4, result, 45_000, "daemon/info");
    const text = wholeText(answerText(answer, log));
    const found = JSON.parse(text) as { id: number; result?: object; error?: object }[];
    expect(found).toEqual(answer);
    expect(found.map(({ id, error }) => [id, error !== undefined])).toEqual([
      [0, false],
      [1, false],
      [2, true],
      // The answer of a reading call that is likely to be as long is not built.
      [3, true],
      [4, false],
    ]);
    expect(found[2]).toMatchObject({ error: { data: { name: "too_large", maxBatchAnswerBytes: 45_000 } } });
  });

  test("are not built without space: reading calls then end or are not made", async () => {
    let written = 0;
    const result = () => ({
      toJSON: () => {
        written += 1;
        for (const until = performance.now() + 2; performance.now() < until; );
        return "x".repeat(20_000);
      },
    });
    const answer = await batch(50, result, 45_000);
    expect(answer.filter((one) => "result" in one)).toHaveLength(2);
    expect(written).toBe(2);
  });

  test("may be one answer that is longer than the limit", async () => {
    const [only] = await batch(1, () => ({ openrpc: "x".repeat(60_000) }), 45_000);
    expect(only).toHaveProperty("result");
  });

  test("leave turns of the event loop to others while they are written", async () => {
    let turns = 0;
    let isWritten = false;
    const count = (): void => {
      turns += 1;
      if (!isWritten) setImmediate(count);
    };
    let written = 0;
    const slow = {
      toJSON: () => {
        written += 1;
        for (const until = performance.now() + 6; performance.now() < until; );
        return "openrpc";
      },
    };
    const answer = batch(5, () => {
      if (turns === 0) count();
      return slow;
    });
    await answer;
    isWritten = true;
    expect(written).toBe(5);
    expect(turns).toBeGreaterThanOrEqual(4);
  });
});

test("a cached text is built once, and is the same JSON in an answer and in a batch", async () => {
  let written = 0;
  const toJSON = (): string => {
    written += 1;
    return `1.${written}`;
  };
  const result = keepText({ openrpc: { toJSON } });
  const [first, second] = await batch(2, () => result);
  expect(written).toBe(1);
  const text = (id: number): string => `{"jsonrpc":"2.0","id":${id},"result":{"openrpc":"1.1"}}`;
  expect(wholeText(answerText(first as RpcResponse, log))).toBe(text(0));
  expect(wholeText(answerText([first, second] as RpcResponse[], log))).toBe(`[${text(0)},${text(1)}]`);
  expect(written).toBe(1);
});
