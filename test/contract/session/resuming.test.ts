import { expect, test } from "vitest";
import { recorder, startCore } from "../../helpers/core.ts";

test("a push that is in the transcript but in no request wakes its session when the next daemon starts", async () => {
  await using core = await startCore();
  const created = await core.registry.create({ cwd: core.cwd });
  const { sessionId } = created;
  await core.tracker.accept({ sessionId, customType: "n", content: "x", deliveryId: "p" });
  core.tracker.apply(sessionId, "p", { kind: "inserted", at: Date.now() });
  await core.restart();
  expect(core.tracker.get("p").state).toBe("inserted");
  const heard = recorder();
  core.registry.get(sessionId).subscribe(heard);
  void core.registry.resume();
  const { params } = await heard.until((one) => one.params.session?.state === "idle");
  expect(params.session.generation).toBe(2);
});
