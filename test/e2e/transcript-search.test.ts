import { expect, test } from "vitest";
import type { Result } from "../../protocol/methods.ts";
import { answer, call, thinking } from "../../provider/reply.ts";
import { fallAsleep } from "../helpers/asleep.ts";
import { shareStage } from "../helpers/shared-stage.ts";

const shared = shareStage({ agent: { settings: { compaction: { keepRecentTokens: 100 } } } });

type Found = Result<"transcript/search">;

test("what real pi wrote is found, awake, asleep and after a restart, and no pi starts", async () => {
  await using stage = await shared.use();
  const session = await stage.freshSession();
  stage.provider.add(
    answer(thinking("Perhaps Zébra."), "A ZÉBRA.", call("bash", { command: "echo 'zébra\n'" })),
    answer("Done."),
  );
  await session.promptAndWait("Is there a zébra?");
  stage.provider.add(answer("Fourth reply."));
  await session.promptAndWait("More. ".repeat(500));
  await session.push({ customType: "note", content: "Zébras came.", triggerTurn: false }).inserted;
  stage.provider.add(answer("The summary of the zébra."));
  await session.compact();
  await stage.client.call("session/rename", { sessionId: session.id, name: "About the zébra" });
  await session.waitForIdle();
  const other = await stage.freshSession();
  stage.provider.add(answer("Another one."));
  await other.promptAndWait("A second zébra?");

  const find = (params: { query?: string; sessionId?: string }): Promise<Found> =>
    stage.client.call("transcript/search", { query: "ZÉBRA", ...params });
  const own = await find({ sessionId: session.id });
  expect(own.hits.map(({ kind, excerpt }) => [kind, excerpt.trim()])).toEqual([
    ["name", "About the zébra"],
    ["summary", expect.stringContaining("The summary of the zébra.")],
    ["custom", "Zébras came."],
    ["toolResult", "zébra"],
    ["thinking", "Perhaps Zébra."],
    ["user", "Is there a zébra?"],
  ]);
  const entries = (await session.transcript({ limit: 1_000 })).entries.map(({ id }) => id);
  expect(own.hits.every(({ entryId }) => entries.includes(entryId))).toBe(true);
  expect((await find({ query: "echo 'zébra\n'", sessionId: session.id })).hits).toMatchObject([{ kind: "toolCall" }]);
  expect((await find({ query: '"command"' })).hits).toEqual([]);

  await fallAsleep(stage.client, session.id);
  const state = async (): Promise<unknown> => {
    const { generation, state: kind, pid } = await stage.client.session(session.id).get();
    return [generation, kind, pid];
  };
  const before = await state();
  expect(await find({ sessionId: session.id })).toEqual(own);
  const all = await find({});
  expect(all.hits.map(({ sessionId }) => sessionId)).toEqual([other.id, ...own.hits.map(() => session.id)]);
  expect(await state()).toEqual(before);
  await stage.restart();
  expect(await find({ sessionId: session.id })).toEqual(own);
  const http = await fetch(`${stage.daemon.file.url}/v1/search?query=Z%C3%89BRA&sessionId=${session.id}`, {
    headers: { authorization: `Bearer ${stage.daemon.file.token}` },
  });
  expect(await http.json()).toEqual(own);
  expect(await state()).toEqual(before);
});
