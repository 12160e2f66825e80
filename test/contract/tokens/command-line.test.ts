import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { token as command } from "../../../cli/token.ts";
import { connect } from "../../../client/index.ts";
import { startTokenStage, type TokenStage } from "../../helpers/token-stage.ts";
import { memoryOutput } from "../../unit/cli/memory-output.ts";

const ended = { code: 4401, reason: "the token has ended" };
const unauthorized = { status: 401, name: "unauthorized" };

/** Runs `pi-rpcd token …` against the stage's daemon. */
async function run({ stateDir }: TokenStage, words: readonly string[], options: object = {}, json = false) {
  const { output, stdout, stderr } = memoryOutput({ json });
  const { signal } = new AbortController();
  const all = { "state-dir": stateDir, ...options };
  expect(await command({ options: all, arguments: words, output, env: {}, signal })).toBe(0);
  return { stdout: stdout(), stderr: stderr(), document: () => JSON.parse(stdout()) };
}

test("token create, list, rotate and revoke work on a real daemon while the token is in use", async () => {
  await using stage = await startTokenStage();
  const cwd = stage.directory("own");
  const made = await run(stage, ["create", "ci"], { capabilities: "observe,prompt", label: "team=ci", cwd });
  const secret = made.stdout.trim();
  expect(secret).toMatch(/^[\w-]{43}$/);
  expect(made.stderr).toBe("ci: observe, prompt; the secret is not shown again\n");
  const { sessionId, labels } = await stage.call(secret, "session/create", { cwd });
  expect(labels).toEqual({ team: "ci" });
  mkdirSync(join(stage.root, "other"));
  expect(await stage.call(secret, "session/create", { cwd: join(stage.root, "other") })).toMatchObject({
    name: "forbidden",
  });

  const listed = await run(stage, ["list"]);
  expect(listed.stdout).toMatch(/^main +observe,prompt,bash,payload,admin +- +\d/m);
  expect(listed.stdout).toMatch(new RegExp(`^ci +observe,prompt +team=ci ${cwd} +\\d.* ago$`, "m"));
  expect(listed.stdout).not.toContain(secret);
  const names = (await run(stage, ["list"], {}, true)).document().tokens.map(({ name }: { name: string }) => name);
  expect(names).toEqual(["main", "ci"]);

  // During its life: the connection ends, the session and its limits stay.
  await using before = await stage.webSocket(secret);
  await before.call("session/subscribe", { sessionId });
  const rotated = (await run(stage, ["rotate", "ci"], {}, true)).document();
  expect(rotated).toMatchObject({ name: "ci", labels: { team: "ci" }, rotatedAt: expect.any(Number) });
  expect(await before.closed).toEqual(ended);
  expect(await stage.call(secret, "session/list")).toEqual(unauthorized);
  expect(await stage.call(rotated.token, "session/get", { sessionId })).toMatchObject({ sessionId });

  await using after = await stage.webSocket(rotated.token);
  expect((await run(stage, ["revoke", "ci"])).stdout).toBe("ci is revoked; its connections are closed.\n");
  expect(await after.closed).toEqual(ended);
  expect(await stage.call(rotated.token, "session/list")).toEqual(unauthorized);
  expect(await stage.call(stage.main, "session/get", { sessionId })).toMatchObject({ sessionId });
});

test("rotating the daemon's own token does not interrupt clients and commands, which use the new one", async () => {
  await using stage = await startTokenStage();
  await using webSocket = await stage.webSocket(stage.main);
  const client = await connect({ stateDir: stage.stateDir, reconnect: { firstDelayMs: 1 } });
  const again = new Promise<void>((resolve) => {
    client.onConnection(({ kind }) => kind === "connected" && resolve());
  });
  const secret = (await run(stage, ["rotate"])).stdout.trim();
  expect(secret).not.toBe(stage.main);
  expect(await webSocket.closed).toEqual(ended);
  await again;
  expect(await client.call("session/list", {})).toEqual({ sessions: [] });
  expect((await run(stage, [])).stdout).toBe(`${secret}\n`);
  expect((await run(stage, ["list"], {}, true)).document().tokens).toHaveLength(1);
  await client.close();
});

test("errors about tokens are reported by name", async () => {
  await using stage = await startTokenStage();
  await run(stage, ["create", "ci"]);
  await expect(run(stage, ["create", "ci"])).rejects.toMatchObject({ kind: "conflict" });
  await expect(run(stage, ["create", "-x"])).rejects.toMatchObject({ kind: "invalid_params" });
  await expect(run(stage, ["create", "other"], { capabilities: "admin", label: "a" })).rejects.toMatchObject({
    kind: "invalid_params",
  });
  await expect(run(stage, ["create", "other"], { capabilities: "root" })).rejects.toMatchObject({
    name: "UsageError",
    message: 'Unknown capability "root". The capabilities are: observe, prompt, bash, payload, admin.',
  });
  await expect(run(stage, ["rotate", "nobody"])).rejects.toMatchObject({ kind: "token_not_found" });
  await expect(run(stage, ["revoke", "nobody"])).rejects.toMatchObject({ kind: "token_not_found" });
  await expect(run(stage, ["revoke", "main"])).rejects.toMatchObject({ kind: "forbidden" });
  const { tokens } = await stage.call(stage.main, "token/list");
  expect(tokens.map(({ name }: { name: string }) => name)).toEqual(["main", "ci"]);
});
