import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { token } from "../../../cli/token.ts";
import { memoryOutput } from "./memory-output.ts";

const facts = { name: "ci", capabilities: ["observe"], createdAt: Date.now() - 5_000 };

/** A daemon that only knows tokens. */
async function stage() {
  const folder = mkdtempSync(join(tmpdir(), "token-"));
  const calls: unknown[] = [];
  const answers: Readonly<Record<string, unknown>> = {
    "token/create": { ...facts, token: "secret-of-ci" },
    "token/rotate": { ...facts, name: "main", token: "another" },
    "token/list": { tokens: [{ ...facts, labels: { team: "a" }, cwds: ["/srv"], lastUsedAt: Date.now() - 1_000 }] },
    "token/revoke": {},
  };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { method, params } = JSON.parse(Buffer.concat(chunks).toString());
      calls.push([method, params]);
      response.end(JSON.stringify({ jsonrpc: "2.0", id: 1, result: answers[method] }));
    });
  });
  const socketPath = join(folder, "daemon.sock");
  await once(server.listen(socketPath), "listening");
  const file = {
    pid: process.pid,
    version: "0.1.0",
    protocol: 1,
    url: "http://127.0.0.1:9",
    socketPath,
    token: "main-secret",
  };
  writeFileSync(join(folder, "daemon.json"), JSON.stringify(file));
  const run = async (words: readonly string[], options: object = {}, json = false) => {
    const { output, stdout, stderr } = memoryOutput({ json });
    const signal = new AbortController().signal;
    await token({
      options: { "state-dir": folder, "no-start": true, ...options },
      arguments: words,
      output,
      env: {},
      signal,
    });
    return { stdout: stdout(), stderr: stderr() };
  };
  return {
    run,
    calls,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
      rmSync(folder, { recursive: true });
    },
  };
}

test("only the secret is on stdout, for the daemon's own token and a new one", async () => {
  await using scene = await stage();
  expect((await scene.run([])).stdout).toBe("main-secret\n");
  const made = await scene.run(["create", "ci"], {
    capabilities: "observe,prompt",
    label: "team=a,draft",
    cwd: "/srv",
  });
  expect(made).toEqual({ stdout: "secret-of-ci\n", stderr: "ci: observe; the secret is not shown again\n" });
  expect((await scene.run(["rotate"])).stdout).toBe("another\n");
  expect(scene.calls).toEqual([
    [
      "token/create",
      { name: "ci", capabilities: ["observe", "prompt"], labels: { team: "a", draft: "" }, cwds: ["/srv"] },
    ],
    ["token/rotate", { name: "main" }],
  ]);
});

test("tokens are listed with their limits, and revoked", async () => {
  await using scene = await stage();
  const { stdout } = await scene.run(["list"]);
  expect(stdout).toMatch(/^NAME +CAPABILITIES +ONLY +AGE +LAST USED\nci +observe +team=a \/srv +5 s +1 s ago\n$/);
  expect(JSON.parse((await scene.run(["list"], {}, true)).stdout)).toMatchObject({ tokens: [{ name: "ci" }] });
  expect((await scene.run(["revoke", "ci"])).stdout).toContain("ci is revoked");
  expect(scene.calls.at(-1)).toEqual(["token/revoke", { name: "ci" }]);
});

test.each([
  [["create"], {}],
  [["revoke"], {}],
  [["show", "ci"], {}],
  [["list"], { cwd: "/srv" }],
])("%j with %j is wrong usage, and calls nothing", async (words, options) => {
  await using scene = await stage();
  await expect(scene.run(words, options)).rejects.toMatchObject({ name: "UsageError" });
  expect(scene.calls).toEqual([]);
});
