import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { answer } from "../../../provider/reply.ts";
import { fallAsleep } from "../../helpers/asleep.ts";
import type { Unchecked } from "../../helpers/unchecked.ts";
import { Scene, transports } from "./scene.ts";

describe.each(transports)("over %s", (over) => {
  test("initialize says what the agent can, also a second time, and everything before it is refused", async () => {
    await using scene = await Scene.open([], { over });
    const editor = await scene.connect();
    await expect(editor.create(scene.cwd)).rejects.toMatchObject({ code: -32_600 });
    const first = await editor.call("initialize", { protocolVersion: 99 });
    expect(first).toMatchObject({
      protocolVersion: 1,
      agentInfo: { name: "pi-rpcd" },
      agentCapabilities: {
        loadSession: true,
        promptCapabilities: { image: true, embeddedContext: true },
        sessionCapabilities: { list: {}, resume: {}, close: {}, delete: {} },
      },
      authMethods: [{ id: "pi" }],
    });
    const { methods } = (first["agentCapabilities"] as Unchecked)._meta["pi-rpcd"];
    expect(methods).toEqual(expect.arrayContaining(["delivery/push", "token/create"]));
    expect(methods).not.toContain("session/subscribe");
    expect(await editor.initialize()).toEqual(first);
    const login = await editor.initialize({ auth: { terminal: true } });
    expect(login["authMethods"]).toMatchObject([{ type: "terminal", args: ["--login"] }]);
    expect(await editor.call("authenticate", { methodId: "anything" })).toEqual({});
  });

  test("what is no request of the protocol has its own error", async () => {
    await using scene = await Scene.open([], { over });
    const editor = await scene.editor();
    await expect(editor.call("session/unknown", {})).rejects.toMatchObject({ code: -32_601 });
    await expect(editor.call("_other/thing", {})).rejects.toMatchObject({ code: -32_601 });
    await expect(editor.call("constructor", {})).rejects.toMatchObject({ code: -32_601 });
    await expect(editor.call("_pi-rpcd/constructor", {})).rejects.toMatchObject({ code: -32_601 });
    await expect(editor.call("session/list", { cursor: "own nothing" })).rejects.toMatchObject({ code: -32_602 });
    await expect(editor.call("session/new", { cwd: 7 })).rejects.toMatchObject({ code: -32_602 });
    await expect(editor.call("session/new", { cwd: "relative" })).rejects.toMatchObject({ code: -32_602 });
    await expect(editor.call("session/new", { cwd: "/nowhere/at/all" })).rejects.toMatchObject({ code: -32_602 });
    await expect(editor.prompt("unknown", "Go.")).rejects.toMatchObject({ code: -32_002 });
    const unknown = { sessionId: "01a20000-0000-7000-8000-000000000000", cwd: scene.cwd, mcpServers: [] };
    await expect(editor.call("session/load", unknown)).rejects.toMatchObject({ code: -32_002 });
    expect(await editor.call("session/delete", { sessionId: unknown.sessionId })).toEqual({});
    const before = editor.messages;
    editor.notify("unknown/notification", {});
    editor.write({ jsonrpc: "2.0", method: "session/cancel", params: [1] });
    editor.write("no JSON");
    editor.write([{ jsonrpc: "2.0", id: 1, method: "initialize" }]);
    editor.write({ jsonrpc: "2.0", id: null });
    await editor.until(() => editor.messages === before + 3);
    expect(editor.strays.map(({ error }) => (error as { code: number }).code)).toEqual([-32_700, -32_600, -32_600]);
  });

  test("sessions are listed once, by directory, and deleted for good", async () => {
    await using scene = await Scene.open([answer("One."), answer("Two.")], { over });
    const editor = await scene.editor();
    const ids = [await editor.create(scene.cwd), await editor.create(scene.cwd)];
    for (const sessionId of ids) await editor.prompt(sessionId, "A first prompt.");
    const other = join(scene.cwd, "other");
    mkdirSync(other);
    expect(await editor.call("session/list", { cwd: other })).toEqual({ sessions: [] });
    const { sessions } = await editor.call("session/list", { cwd: scene.cwd });
    expect((sessions as { sessionId: string }[]).map(({ sessionId }) => sessionId).toSorted()).toEqual(ids.toSorted());
    expect(sessions).toMatchObject([{ title: "A first prompt." }, { title: "A first prompt." }]);
    const [first = "", second = ""] = ids;
    // A session that the daemon does not have any more is still pi's.
    await scene.stage.client.session(second).close();
    const { sessions: after } = await editor.call("session/list", {});
    expect((after as { sessionId: string }[]).map(({ sessionId }) => sessionId).toSorted()).toEqual(ids.toSorted());
    for (const sessionId of ids) expect(await editor.call("session/delete", { sessionId })).toEqual({});
    expect(await editor.call("session/list", {})).toEqual({ sessions: [] });
    expect(first).not.toBe(second);
  });

  test("a session that somebody else follows is not deleted", async () => {
    await using scene = await Scene.open([answer("One.")], { over });
    const [editor, other] = [await scene.editor(), await scene.editor()];
    const sessionId = await editor.create(scene.cwd);
    await editor.prompt(sessionId, "Go.");
    await other.call("session/resume", { sessionId, cwd: scene.cwd });
    await expect(editor.call("session/delete", { sessionId })).rejects.toMatchObject({ code: -32_603 });
    expect(await other.call("session/close", { sessionId })).toEqual({});
    expect(await editor.call("session/delete", { sessionId })).toEqual({});
  });

  test("the model and the thinking level are chosen, and every other client is told", async () => {
    await using scene = await Scene.open([], { over });
    const [editor, other] = [await scene.editor(), await scene.editor()];
    const created = await editor.call("session/new", { cwd: scene.cwd, mcpServers: [] });
    const sessionId = String(created["sessionId"]);
    expect(created).toMatchObject({
      configOptions: [
        { id: "model", currentValue: "scripted/model-1" },
        { id: "thought_level", currentValue: "off" },
      ],
      modes: { currentModeId: "off" },
      models: { currentModelId: "scripted/model-1" },
    });
    await other.call("session/resume", { sessionId, cwd: scene.cwd });
    const value = "scripted-anthropic/model-1";
    expect(await editor.call("session/set_config_option", { sessionId, configId: "model", value })).toMatchObject({
      configOptions: [{ id: "model", currentValue: value }, {}],
    });
    await other.until(() => other.of(sessionId, "config_option_update").length > 0);
    expect(other.of(sessionId, "config_option_update").at(-1)).toMatchObject({
      configOptions: [{ currentValue: value }, {}],
    });
    await editor.call("session/set_model", { sessionId, modelId: "scripted/model-1" });
    await expect(editor.call("session/set_model", { sessionId, modelId: "no/such" })).rejects.toMatchObject({
      code: -32_603,
    });
    const unknown = { sessionId, configId: "colour", value: "red" };
    await expect(editor.call("session/set_config_option", unknown)).rejects.toMatchObject({ code: -32_602 });
  });

  test("the daemon's own methods are reached, but not those of its connections", async () => {
    await using scene = await Scene.open([], { over });
    const editor = await scene.editor();
    const sessionId = await editor.create(scene.cwd);
    const push = { sessionId, customType: "note", content: "Note this.", triggerTurn: false, deliverAs: "nextTurn" };
    expect(await editor.call("_pi-rpcd/delivery/push", push)).toMatchObject({ state: "accepted" });
    await expect(editor.call("_pi-rpcd/session/subscribe", { sessionId })).rejects.toMatchObject({ code: -32_601 });
    await expect(editor.call("_pi-rpcd/session/get", { sessionId: "unknown" })).rejects.toMatchObject({
      data: { name: "session_not_found" },
    });
  });

  test("a session keeps its own directory", async () => {
    await using scene = await Scene.open([answer("One.")], { over });
    const editor = await scene.editor();
    const sessionId = await editor.create(scene.cwd);
    await editor.prompt(sessionId, "Go.");
    const session = scene.stage.client.session(sessionId);
    await fallAsleep(scene.stage.client, sessionId);
    const before = await session.get();
    const server = { name: "own", command: process.execPath, args: [], env: [] };
    for (const method of ["session/load", "session/resume"]) {
      const elsewhere = { sessionId, cwd: "/", mcpServers: [server] };
      await expect(editor.call(method, elsewhere)).rejects.toMatchObject({ code: -32_602, data: { cwd: scene.cwd } });
    }
    // Nothing has changed, and no pi was started for that.
    expect(await session.get()).toEqual(before);
    // A link to it is the same directory.
    symlinkSync(scene.cwd, join(scene.stage.root, "link"));
    expect(
      await editor.call("session/load", { sessionId, cwd: join(scene.stage.root, "link"), mcpServers: [] }),
    ).toMatchObject({ modes: {} });
    await session.close();
    const stored = { sessionId, cwd: "/", mcpServers: [server] };
    await expect(editor.call("session/resume", stored)).rejects.toMatchObject({
      code: -32_602,
      data: { cwd: scene.cwd },
    });
    expect(await scene.stage.client.listSessions()).toEqual([]);
  });

  test("without a model a new session needs a login, and leaves nothing", async () => {
    await using scene = await Scene.open([], { over, hasModels: false });
    const editor = await scene.editor({ model: null });
    const refused = { code: -32_000, data: { authMethods: [{ id: "pi" }] } };
    await expect(editor.create(scene.cwd)).rejects.toMatchObject(refused);
    await expect(editor.call("authenticate", { methodId: "pi" })).rejects.toMatchObject(refused);
    expect(await scene.stage.client.listSessions()).toEqual([]);
  });
});
