import { expect, test } from "vitest";
import { startTokenStage } from "../../helpers/token-stage.ts";

test("asking for the report of a disabled part starts no pi", async () => {
  await using stage = await startTokenStage();
  const call = (method: string, params: object) => stage.call(stage.main, method, params);
  const { sessionId } = await call("session/create", { cwd: stage.root });
  await call("session/hibernate", { sessionId, force: true });
  expect(await call("cache/report", { sessionId })).toMatchObject({ name: "unsupported_by_pi" });
  expect(await call("session/get", { sessionId })).toMatchObject({ state: "hibernated", generation: 1 });
});

test("an answer of pi's parts in a wrong form is refused: any extension can forge it", async () => {
  await using stage = await startTokenStage();
  const { sessionId } = await stage.call(stage.main, "session/create", { cwd: stage.root });
  expect(await stage.call(stage.main, "optimisation/inspect", { sessionId })).toMatchObject({
    name: "link_failed",
    message: 'The helper extension\'s answer to "optimisation/inspect" is invalid.',
  });
});

test("what is known is answered over HTTP too, and a thousand such calls start no pi", async () => {
  await using stage = await startTokenStage();
  const { sessionId } = await stage.call(stage.main, "session/create", { cwd: stage.root });
  const known = async (from: string) =>
    (await stage.http(stage.main, "GET", `/v1/sessions/${sessionId}/${from}`)).body as object;
  expect(await known("commands?cached=true")).toMatchObject({ name: "answer_unknown" });
  const fresh = await known("commands");
  expect(await known("commands?cached=true")).toEqual({ ...fresh, cached: true, cachedAt: expect.any(Number) });
  await stage.call(stage.main, "session/hibernate", { sessionId, force: true });
  for (let at = 0; at < 1_000; at += 1) await known(at % 2 === 0 ? "thinking-levels?cached=true" : "stats?cached=true");
  expect(await stage.call(stage.main, "model/list", { sessionId, cached: true })).toMatchObject({
    name: "answer_unknown",
  });
  expect(await stage.call(stage.main, "session/get", { sessionId })).toMatchObject({
    state: "hibernated",
    generation: 1,
  });
});
