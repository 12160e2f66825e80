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
