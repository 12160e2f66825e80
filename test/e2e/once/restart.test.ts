import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { expect, test } from "vitest";
import { exampleOf } from "../../../protocol/examples.ts";
import { Scene } from "../cli/scene.ts";

const fakePi = join(import.meta.dirname, "..", "..", "fixtures", "fake-pi.mjs");

test("start --restart ends the running daemon and starts another, which has the sessions", async () => {
  await using scene = await Scene.open();
  const env = { PI_RPCD_PI: fakePi };
  const first = await scene.json(["start", "--restart"], { env });
  expect(first).toMatchObject({ started: true });
  const { sessionId } = await scene.json(["new"], { env });
  const second = await scene.json(["start", "--restart"], { env });
  expect(second).toMatchObject({ started: true, stateDir: scene.stateDir });
  expect(second["pid"]).not.toBe(first["pid"]);
  expect(await scene.json(["ls"])).toMatchObject({ sessions: [{ sessionId }] });
});

test("with live restore start --restart makes the daemon end with 75, which its service manager takes as a failure", async () => {
  await using scene = await Scene.open();
  const env = { PI_RPCD_PI: fakePi };
  const first = scene.start(["start", "--foreground", "--json"], { env });
  await first.said(/"started"/);
  expect(await scene.json(["status"], { env })).toMatchObject({ liveRestore: { available: true } });
  const { url, token } = scene.daemonFile ?? {};
  const metrics = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${token}` } });
  expect(await metrics.text()).toMatch(/^pi_rpcd_child_restores_total 0\n[\s\S]*^pi_rpcd_child_losses_total 0$/m);
  const second = await scene.json(["start", "--restart"], { env });
  expect((await first.ended).code).toBe(75);
  expect(second).toMatchObject({ started: true, stateDir: scene.stateDir });
});

test("without live restore SIGUSR2 is an ordinary end with 75, which keeps the sessions", async () => {
  await using scene = await Scene.open();
  const env = { PI_RPCD_PI: fakePi, PI_RPCD_LIVE_RESTORE: "false" };
  const daemon = scene.start(["start", "--foreground", "--json"], { env });
  await daemon.said(/"started"/);
  const { sessionId } = await scene.json<{ readonly sessionId: string }>(["new"], { env });
  expect((await scene.json(["status"], { env }))["liveRestore"]).toEqual({
    available: false,
    why: "The setting liveRestore is false.",
    restored: 0,
    lost: 0,
  });
  daemon.kill("SIGUSR2");
  expect((await daemon.ended).code).toBe(75);
  await scene.json(["start"], { env });
  expect(await scene.json(["ls"])).toMatchObject({ sessions: [{ sessionId, state: "hibernated" }] });
});

test("a daemon that is older than the command line is named, with advice", async () => {
  await using scene = await Scene.open();
  mkdirSync(scene.stateDir, { mode: 0o700 });
  const socketPath = join(scene.stateDir, "daemon.sock");
  const answer = exampleOf("daemon/info").result as object;
  const info = { ...answer, pid: process.pid, version: "0.0.9", protocol: 1, stateDir: scene.stateDir };
  const server = createServer((request, response) => {
    request.resume().once("end", () => response.end(JSON.stringify({ jsonrpc: "2.0", id: 1, result: info })));
  });
  await once(server.listen(socketPath), "listening");
  try {
    const file = { pid: process.pid, version: "0.0.9", protocol: 1, url: "http://127.0.0.1:9", socketPath };
    writeFileSync(join(scene.stateDir, "daemon.json"), JSON.stringify({ ...file, token: "t".repeat(43) }));
    for (const command of ["status", "start"]) {
      const { code, stderr } = await scene.run([command]);
      expect(code).toBe(0);
      expect(stderr).toMatch(/^pi-rpcd: the running daemon is pi-rpcd 0\.0\.9, older than .*pi-rpcd start --restart\n/);
    }
    const found = await scene.run(["doctor", "--quick"]);
    expect(found.stdout).toMatch(/^! daemon .*older than this command line.*\n +→ pi-rpcd stop/m);
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});
