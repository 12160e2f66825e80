import { expect, test } from "vitest";
import { answer, call } from "../../../../provider/reply.ts";
import type { Unchecked } from "../../../helpers/unchecked.ts";
import { openScene } from "./scene.ts";

const asksFirst = answer(call("bash", { command: "echo ask-first" }));

function selected(params: Unchecked, name: string): Unchecked {
  const { optionId } = params.options.find((each: Unchecked) => each.name === name);
  return { outcome: { outcome: "selected", optionId } };
}

test("a tool that an extension asks about needs the user, and has its own title", async () => {
  await using scene = await openScene([asksFirst, answer("Done."), asksFirst, answer("Done.")]);
  const words = ["Yes", "No"];
  const client = await scene.client({ answer: (_method, params) => selected(params, words.shift() ?? "") });
  const sessionId = await client.create(scene.cwd);
  for (const stateOfTool of ["completed", "failed"]) {
    await client.run(sessionId, "Go.");
    expect([...client.view(sessionId).tools.values()].at(-1)).toMatchObject({
      title: "echo ask-first",
      status: stateOfTool,
    });
  }
  expect(client.asked).toMatchObject(
    [...client.view(sessionId).tools.keys()].map((toolCallId) => ({
      method: "session/request_permission",
      params: {
        title: "Run it?",
        description: "echo ask-first",
        subject: { type: "tool_call", toolCall: { toolCallId } },
        options: [
          { name: "Yes", kind: "allow_once" },
          { name: "No", kind: "reject_once" },
        ],
      },
    })),
  );
  expect(client.states(sessionId).map(({ state }) => state)).toEqual(
    Array(2).fill(["running", "requires_action", "running", "idle"]).flat(),
  );
});

test("questions of commands belong to no tool, and are asked by forms where there are any", async () => {
  await using scene = await openScene();
  const client = await scene.client({
    capabilities: { elicitation: { form: {} } },
    answer: (method, params) => {
      if (method === "session/request_permission") return selected(params, "OK");
      const { value } = params.requestedSchema.properties;
      const chosen = value.enum?.[1] ?? (value.default === undefined ? undefined : `${value.default}!`);
      return chosen === undefined ? { action: "decline" } : { action: "accept", content: { value: chosen } };
    },
  });
  const sessionId = await client.create(scene.cwd);
  const questions = [
    { method: "select", title: "May it?", options: ["never", "OK"] },
    { method: "select", title: "Which colour?", options: ["red", "green"] },
    { method: "editor", title: "Edit it.", text: "before" },
    { method: "input", title: "Which word?", text: "placeholder" },
  ];
  await client.run(sessionId, `/ask ${JSON.stringify(questions)}`);
  expect(client.asked.map(({ params }) => params.subject ?? params.toolCallId)).toEqual(Array(4).fill(undefined));
  expect(client.asked.map(({ method }) => method)).toEqual([
    "session/request_permission",
    ...Array(3).fill("elicitation/create"),
  ]);
  expect(client.of(sessionId, "notice").map(({ title }) => title)).toEqual(['["OK","green","before!",null]']);
  expect([...client.view(sessionId).tools]).toEqual([]);
  const states = client.states(sessionId).map(({ state }) => state);
  expect([states[0], states[1], states.at(-1)]).toEqual(["running", "requires_action", "idle"]);
});

test("a text that nobody can give is cancelled, with a notice", async () => {
  await using scene = await openScene();
  const client = await scene.client();
  const sessionId = await client.create(scene.cwd);
  await client.run(sessionId, `/ask ${JSON.stringify([{ method: "input", title: "Which word?" }])}`);
  expect(client.asked).toEqual([]);
  const titles = client.of(sessionId, "notice").map(({ title }) => title);
  expect(titles).toEqual(expect.arrayContaining([expect.stringContaining("Which word?"), "[null]"]));
});

test("another client's answer withdraws the request, and so does session/cancel", async () => {
  await using scene = await openScene([asksFirst, answer("Done."), asksFirst]);
  const client = await scene.client();
  const sessionId = await client.create(scene.cwd);
  await client.prompt(sessionId, "Go.");
  await client.until(() => client.asked.length === 1);
  const session = scene.stage.client.session(sessionId);
  const [{ dialogId = "" } = {}] = await session.dialogs();
  await session.respond(dialogId, { confirmed: true });
  expect(await client.idle(sessionId)).toMatchObject({ stopReason: "end_turn" });
  expect(client.withdrawn).toBe(1);
  await client.prompt(sessionId, "Again.");
  await client.until(() => client.asked.length === 2);
  client.cancel(sessionId);
  await client.until(() => client.states(sessionId).at(-1)?.stopReason === "cancelled");
  expect(client.withdrawn).toBe(2);
  expect(await session.dialogs()).toEqual([]);
});

test("a client that attaches while a question is open is asked, and told that it needs the user", async () => {
  await using scene = await openScene([asksFirst, answer("Done.")]);
  const client = await scene.client();
  const sessionId = await client.create(scene.cwd);
  await client.prompt(sessionId, "Go.");
  await client.until(() => client.asked.length === 1);
  const other = await scene.client({ answer: (_method, params) => selected(params, "Yes") });
  await other.call("session/resume", { sessionId, cwd: scene.cwd });
  expect(await other.idle(sessionId)).toMatchObject({ stopReason: "end_turn" });
  expect(other.states(sessionId).map(({ state }) => state)).toEqual(["running", "requires_action", "running", "idle"]);
  expect(await client.idle(sessionId)).toMatchObject({ stopReason: "end_turn" });
});
