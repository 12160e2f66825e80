import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { answer, call, status } from "../../../provider/reply.ts";
import { createLog } from "../../../server/log.ts";
import { startStage } from "../../helpers/stage.ts";

const apiKey = "sk-test-2f1c0d9e8b7a6f5e4d3c";
const envKey = "sk-ant-test-77aa66bb55cc44dd";
const words = "my password is hunter2-correct-horse";
const pushed = "the deploy key is AKIATESTEXAMPLE99";
const wrongToken = "a-wrong-token-0123456789abcdef";

test("no log has a token, a key or the text of a conversation, at the level trace, whatever goes wrong", async () => {
  const lines: string[] = [];
  const log = createLog({ level: "trace", lines: { write: (line) => lines.push(line) } });
  let token = "";
  {
    await using stage = await startStage({
      log,
      provider: {
        apiKey,
        script: [answer(words, call("bash", { command: `echo ${words}` })), answer(words), status(401), answer(words)],
      },
      env: () => ({ ANTHROPIC_API_KEY: envKey }),
    });
    const { url, token: own } = stage.daemon.file;
    token = own;
    const session = await stage.session();
    await session.runUntilSettled(words);
    await session.push({ customType: "note", content: pushed }).answered.catch(() => {});
    await stage.client.call("session/rename", { sessionId: session.id, name: words });
    await stage.client.call("session/bash", { sessionId: session.id, command: `echo ${words}; exit 3` });
    await expect(
      stage.client.call("session/prompt", { sessionId: session.id, text: words, unknown: words } as never),
    ).rejects.toThrow();
    await expect(
      stage.client.call("session/create", { cwd: join(stage.cwd, words), env: { X_KEY: envKey } }),
    ).rejects.toThrow();
    const ask = async (path: string, headers: Readonly<Record<string, string>>, body?: string): Promise<number> => {
      const response = await fetch(
        `${url}${path}`,
        body === undefined ? { headers } : { method: "POST", headers, body },
      );
      await response.body?.cancel();
      return response.status;
    };
    const authorization = `Bearer ${token}`;
    const json = { authorization, "content-type": "application/json" };
    expect(await ask("/v1/rpc", { authorization: `Bearer ${wrongToken}` })).toBe(401);
    expect(await ask(`/v1/rpc?token=${token}`, {})).toBe(401);
    expect(await ask(`/%zz?token=${token}`, { authorization })).toBe(401);
    expect(await ask("/v1/rpc", json, `{"text": "${words}"`)).toBe(400);
    expect(await ask("/v1/rpc", json, `{"jsonrpc":"2.0","id":1,"method":"${words}"}`)).toBe(200);
    // Its pi is ended during all this, and writes to its stderr.
    const { pid = 0 } = await session.get();
    process.kill(pid, "SIGKILL");
    await expect.poll(async () => (await session.get()).state).toBe("crashed");
    const { lines: answered } = await stage.client.call("daemon/log", { limit: 500 });
    expect(answered.map(({ fields }) => fields?.["method"])).toContain("delivery/push");
    lines.push(...answered.map((line) => JSON.stringify(line)));
    const { token: rotated } = await stage.client.call("token/rotate", { name: "main" });
    expect(JSON.stringify(lines)).not.toContain(rotated);
    const logs = readdirSync(stage.stateDir, { recursive: true, encoding: "utf8" }).filter((name) =>
      name.endsWith(".log"),
    );
    for (const name of logs) lines.push(readFileSync(join(stage.stateDir, name), "utf8"));
  }
  // The log has lines, and they name the client of each action.
  const records = lines.map((line) => JSON.parse(line) as { readonly msg?: string; readonly method?: string });
  expect(records.map(({ method }) => method)).toEqual(
    expect.arrayContaining(["session/create", "session/prompt", "delivery/push", "session/rename", "session/bash"]),
  );
  for (const secret of [token, wrongToken, apiKey, envKey, words, "hunter2", pushed]) {
    expect(records.filter((record) => JSON.stringify(record).includes(secret))).toEqual([]);
  }
});
