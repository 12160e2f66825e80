import { expect, test } from "vitest";
import { answer, call, thinking } from "../../../../provider/reply.ts";
import { openScene } from "./scene.ts";

test("a prompt is answered with the id of its message, and states and updates tell the rest", async () => {
  await using scene = await openScene([
    answer(thinking("Hm. "), "I look. ", call("bash", { command: "echo hello" })),
    answer("Done."),
  ]);
  const client = await scene.client();
  const sessionId = await client.create(scene.cwd);
  const { messageId } = await client.prompt(sessionId, "Go.");
  expect(await client.idle(sessionId)).toMatchObject({
    stopReason: "end_turn",
    _meta: { "pi-rpcd": { cost: expect.anything() } },
  });
  const view = client.view(sessionId);
  expect([...view.messages.values()].map(({ kind, blocks }) => [kind, blocks])).toEqual([
    ["user_message", [{ type: "text", text: "Go." }]],
    ["agent_thought", [{ type: "text", text: "Hm. " }]],
    ["agent_message", [{ type: "text", text: "I look. " }]],
    ["agent_message", [{ type: "text", text: "Done." }]],
  ]);
  expect([...view.messages.values()][0]?.id).toBe(messageId);
  expect(client.states(sessionId).map(({ state }) => state)).toEqual(["running", "idle"]);
});
