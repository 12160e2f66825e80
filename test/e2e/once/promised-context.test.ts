import { join } from "node:path";
import { expect, test } from "vitest";
import { startStage } from "../../helpers/stage.ts";

const runsAtOnce = join(import.meta.dirname, "..", "..", "fixtures", "extension", "runs-at-once.ts");
const items = [
  { role: "user", content: "What is 2+2?" },
  { role: "assistant", content: "It is 4." },
];

test("a run that an extension starts before the daemon sends the context has the context, in each pi of the session", async () => {
  await using stage = await startStage();
  const context = { document: { format: "pi-rpcd/context", version: 1, items } };
  const { sessionId, pid } = await stage.client.call("session/create", {
    ...{ cwd: stage.cwd, model: "scripted/model-1", ephemeral: true, extensions: [runsAtOnce], context },
  });
  const first = await stage.provider.waitForRequest((request) => request.hasText("I am the first."));
  expect(first.messages.slice(1).map(({ texts }) => texts.join(""))).toEqual([
    "What is 2+2?",
    "It is 4.",
    "I am the first.",
  ]);
  const handle = stage.client.session(sessionId);
  process.kill(pid ?? 0, "SIGKILL");
  await expect.poll(async () => (await handle.get()).state).toBe("crashed");
  await stage.client.call("session/getState", { sessionId });
  const next = await stage.provider.waitForRequest(({ n }) => n > first.n);
  expect(next.countText("What is 2+2?")).toBe(1);
});
