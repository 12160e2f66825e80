import { expect, test } from "vitest";
import { recorder, startCore } from "../../helpers/core.ts";

test("what pi writes to stderr goes to the subscribers that want it, without a number", async () => {
  await using core = await startCore();
  const session = await core.registry.create({ cwd: core.cwd });
  const [wanting, other] = [recorder("wanting"), recorder("other")];
  session.subscribe(wanting, { after: 0, stderr: true });
  session.subscribe(other, { after: 0 });
  await session.prompting.prompt({ text: "stderr 1", ifRunning: "refuse" });
  const { params } = await wanting.until(({ method }) => method === "session/stderr");
  expect(Object.keys(params)).toEqual(expect.arrayContaining(["sessionId", "text"]));
  expect(params).not.toHaveProperty("seq");
  await other.until(({ params: { event } }) => event?.type === "agent_settled");
  expect(other.heard.filter(({ method }) => method === "session/stderr")).toEqual([]);
});
