import { signal } from "@preact/signals";
import { expect, test } from "vitest";
import { type SessionInfo, WireError } from "../../../client/browser.ts";
import { SessionChoices } from "../../../web/state/choices.ts";
import { FakeDaemon, sessionInfo, settled } from "./fake-daemon.ts";

const model = { provider: "scripted", id: "model-1" };

test("shows what is known of a sleeping session, and asks its pi only at a press", async () => {
  const daemon = new FakeDaemon();
  const asleep = (): never => {
    throw new WireError("session_asleep", "The session sleeps.", {});
  };
  daemon.on("session/getThinkingLevels", asleep);
  daemon.on("session/getCommands", asleep);
  daemon.on("model/list", ({ cached = false }) => {
    if (cached) throw new WireError("answer_unknown", "It is not known.", {});
    return {
      models: [
        { ...model, name: "Model 1" },
        { provider: "scripted", id: "model-2" },
      ],
      providers: [],
      asOf: 1,
    };
  });
  const info = signal<SessionInfo | undefined>(sessionInfo("s1", { state: "hibernated", model, thinkingLevel: "low" }));
  const choices = new SessionChoices({ daemon, sessionId: "s1", info });
  await settled();
  expect(choices.isAsleep.value).toBe(true);
  expect(choices.model.value).toEqual({ ...model, name: "model-1" });
  expect(choices.level.value).toBe("low");
  expect([choices.models.value, choices.levels.value, choices.commands.value]).toEqual(
    Array(3).fill({ kind: "unknown" }),
  );
  expect(daemon.calls.filter(({ method }) => method === "model/list")).toMatchObject([{ params: { cached: true } }]);

  daemon.answer("session/getThinkingLevels", { levels: ["off", "low"] });
  daemon.answer("session/getCommands", { commands: [{ name: "review", source: "prompt" }] });
  expect(await choices.ask()).toMatchObject({ kind: "done" });
  expect(choices.models.value).toEqual({
    kind: "known",
    value: [
      { ...model, name: "Model 1" },
      { provider: "scripted", id: "model-2", name: "model-2" },
    ],
  });
  expect(choices.levels.value).toEqual({ kind: "known", value: ["off", "low"] });
  expect(choices.commands.value).toMatchObject({ kind: "known", value: [{ name: "review", description: "" }] });
  expect(choices.model.value?.name).toBe("Model 1");
});

test("changes the model and the level, and asks for the levels of the new model", async () => {
  const daemon = new FakeDaemon();
  daemon.answer("session/setModel", {});
  daemon.answer("session/setThinkingLevel", {});
  const choices = new SessionChoices({ daemon, sessionId: "s1", info: signal(sessionInfo("s1")) });
  await settled();
  daemon.answer("session/getThinkingLevels", { levels: ["high"] });
  await choices.setModel({ ...model, name: "Model 1" });
  expect(choices.levels.value).toEqual({ kind: "known", value: ["high"] });
  await choices.setLevel("high");
  expect(daemon.calls.at(-1)).toEqual({
    method: "session/setThinkingLevel",
    params: { sessionId: "s1", level: "high" },
  });
  daemon.on("session/setModel", () => Promise.reject(new WireError("model_not_found", "pi does not know the model.")));
  expect(await choices.setModel({ ...model, name: "" })).toEqual({
    kind: "refused",
    words: "pi does not know the model.",
  });
});

test("says why pi could not be asked", async () => {
  const daemon = new FakeDaemon();
  daemon.on("model/list", () => Promise.reject(new WireError("start_failed", "pi did not start.")));
  const choices = new SessionChoices({ daemon, sessionId: "s1", info: signal(sessionInfo("s1")) });
  expect(await choices.ask()).toEqual({ kind: "refused", words: "pi did not start." });
  expect(choices.models.value).toEqual({ kind: "refused", words: "pi did not start." });
});

test("shows the models that pi said before, with their windows, and can ask for them again", async () => {
  const daemon = new FakeDaemon();
  const said = { models: [{ ...model, contextWindow: 1_000 }], providers: [], asOf: 5 };
  daemon.on("model/list", ({ cached = false }) => {
    if (cached) return { ...said, cached, cachedAt: 5 };
    return { ...said, models: [{ ...model, contextWindow: 2_000 }], asOf: 9 };
  });
  const info = signal<SessionInfo | undefined>(sessionInfo("s1", { state: "hibernated", model }));
  const choices = new SessionChoices({ daemon, sessionId: "s1", info });
  await settled();
  expect([choices.model.value, choices.modelsAt.value]).toEqual([
    { ...model, name: "model-1", contextWindow: 1_000 },
    5,
  ]);
  await choices.ask();
  expect([choices.model.value?.contextWindow, choices.modelsAt.value]).toEqual([2_000, undefined]);
  // Known models stay where pi cannot be asked.
  daemon.on("model/list", () => Promise.reject(new WireError("start_failed", "pi did not start.")));
  expect(await choices.ask()).toEqual({ kind: "refused", words: "pi did not start." });
  expect(choices.models.value.kind).toBe("known");
});
