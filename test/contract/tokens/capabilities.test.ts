import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { startTokenStage } from "../../helpers/token-stage.ts";

const lacks = (needs: string) => ({ name: "forbidden", needs });

test("a call without the needed capability is refused on every transport: JSON-RPC over HTTP and WebSocket, batches, REST and the other dialect", async () => {
  await using stage = await startTokenStage();
  const { sessionId } = await stage.call(stage.main, "session/create", { cwd: stage.directory("cwd") });
  const token = await stage.token({ name: "looker", capabilities: ["observe"] });
  const params = { sessionId, text: "hi" };
  const prompt = { jsonrpc: "2.0", method: "session/prompt", params };
  const push = { sessionId, customType: "t", content: "x" };

  expect(await stage.call(token, "session/prompt", params)).toMatchObject(lacks("prompt"));
  await using webSocket = await stage.webSocket(token);
  expect((await webSocket.call("session/prompt", params)).error).toMatchObject({ code: -32002, data: lacks("prompt") });
  const get = { jsonrpc: "2.0", id: 2, method: "session/get", params: { sessionId } };
  const { body } = await stage.http(token, "POST", "/v1/rpc", [{ ...prompt, id: 1 }, get, prompt]);
  expect(body).toMatchObject([
    { id: 1, error: { data: lacks("prompt") } },
    { id: 2, result: { sessionId } },
  ]);
  const rest = await stage.http(token, "POST", `/v1/sessions/${sessionId}/deliveries`, {
    customType: "t",
    content: "x",
  });
  expect([rest.status, rest.body]).toEqual([403, expect.objectContaining(lacks("prompt"))]);
  await using dialect = await stage.webSocket(token, `/v0/sessions/${sessionId}`);
  expect((await dialect.call("prompt", { message: "hi" })).error.data).toMatchObject(lacks("prompt"));

  // The refused call had no effect.
  expect(await stage.call(stage.main, "prompt/list", { sessionId })).toEqual({ prompts: [] });
  expect(await stage.call(stage.main, "delivery/list", {})).toEqual({ deliveries: [] });
  const pusher = await stage.token({ name: "pusher", capabilities: ["prompt"] });
  expect(await stage.call(pusher, "delivery/push", push)).toMatchObject({ sessionId });
  expect(await stage.call(pusher, "session/getMessages", { sessionId })).toMatchObject(lacks("observe"));
});

test("no client can claim capabilities: not in a header, hello, or params, nor with another client's id", async () => {
  await using stage = await startTokenStage();
  const { sessionId } = await stage.call(stage.main, "session/create", { cwd: stage.directory("cwd") });
  const token = await stage.token({ name: "looker", capabilities: ["observe", "prompt"] });
  await using webSocket = await stage.webSocket(token);
  const claim = { capabilities: ["admin"], scopes: ["admin"], grant: { name: "main" } };
  for (const params of [claim, { client: { id: "client-x", ...claim } }]) {
    expect((await webSocket.call("daemon/hello", params)).error.data.name).toBe("invalid_params");
  }
  expect((await webSocket.call("token/list", {})).error.data).toMatchObject(lacks("admin"));
  const create = { name: "mine", capabilities: ["admin"] };
  expect((await webSocket.call("token/create", create)).error.data).toMatchObject(lacks("admin"));
  expect((await webSocket.call("token/create", { ...create, token: stage.main })).error.data.name).toBe(
    "invalid_params",
  );

  // The client that controls a session has another token.
  await using owner = await stage.webSocket(stage.main);
  await owner.call("daemon/hello", { client: { id: "client-owner" } });
  await owner.call("session/acquireControl", { sessionId, policy: "exclusive" });
  expect((await webSocket.call("daemon/hello", { client: { id: "client-owner" } })).error.data.name).toBe("conflict");
  const renamed = await webSocket.call("session/rename", { sessionId, name: "mine" });
  expect(renamed.error.data.name).toBe("not_controller");
});

test("options that run code come from a configured profile or an admin, and pi's bash needs the bash capability", async () => {
  const directory = mkdtempSync(join(tmpdir(), "config-"));
  const config = join(directory, "config.json");
  writeFileSync(config, JSON.stringify({ profiles: { trusted: { approve: true, env: { A: "b" } } } }));
  await using stage = await startTokenStage({ config });
  const cwd = stage.directory("cwd");
  const token = await stage.token({ name: "ci", capabilities: ["observe", "prompt"] });
  expect(await stage.call(token, "session/create", { cwd, approve: true })).toMatchObject(lacks("admin"));
  expect(await stage.call(token, "session/create", { cwd, env: { A: "b" } })).toMatchObject(lacks("admin"));
  expect(await stage.call(token, "session/create", { cwd, extensions: ["/x.ts"] })).toMatchObject(lacks("admin"));
  const { sessionId, projectTrust } = await stage.call(token, "session/create", { cwd, profile: "trusted" });
  expect(projectTrust).toBe("approved");
  const bash = { sessionId, command: "true" };
  expect(await stage.call(token, "session/bash", bash)).toMatchObject(lacks("bash"));
  expect(await stage.call(token, "session/export", { sessionId })).toMatchObject(lacks("bash"));
  const sent = (type: string) => stage.call(token, "session/command", { sessionId, command: { type } });
  expect(await sent("bash")).toMatchObject(lacks("bash"));
  expect(await sent("a_command_of_tomorrow")).toMatchObject(lacks("admin"));
  expect(await sent("get_state")).toHaveProperty("data");
  await using webSocket = await stage.webSocket(token);
  const subscribed = await webSocket.call("session/subscribe", { sessionId, provider: "payload" });
  expect(subscribed.error.data).toMatchObject(lacks("payload"));
  rmSync(directory, { recursive: true });
});
