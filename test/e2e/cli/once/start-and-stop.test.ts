import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { exampleOf } from "../../../../protocol/examples.ts";
import { expiredTlsFiles } from "../../../helpers/edge.ts";
import { errorName, Scene } from "../scene.ts";

/** A process that is unrelated to the daemon. */
function bystander(): AsyncDisposable & { readonly pid: number; readonly lives: boolean } {
  const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { stdio: "ignore" });
  return {
    pid: child.pid ?? 0,
    get lives() {
      return child.exitCode === null && child.signalCode === null;
    },
    [Symbol.asyncDispose]: async () => {
      child.kill("SIGKILL");
      await once(child, "exit");
    },
  };
}

function writeDaemonFile(scene: Scene, pid: number): void {
  const file = {
    pid,
    version: "0.1.0",
    protocol: 1,
    url: "http://127.0.0.1:9",
    socketPath: join(scene.stateDir, "daemon.sock"),
    token: "t".repeat(43),
  };
  mkdirSync(scene.stateDir, { recursive: true, mode: 0o700 });
  writeFileSync(join(scene.stateDir, "daemon.json"), JSON.stringify(file), { mode: 0o600 });
}

test("a start with TLS shows its https address, as status does, and both warn of a certificate that has expired", async () => {
  await using scene = await Scene.open();
  const { tlsCert, tlsKey } = expiredTlsFiles;
  const started = await scene.run(["start", "--listen", "127.0.0.1:0", "--tls-cert", tlsCert, "--tls-key", tlsKey]);
  const { tlsUrl = "" } = scene.daemonFile ?? {};
  expect(tlsUrl).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/);
  for (const { code, stdout, stderr } of [started, await scene.run(["status"]), await scene.run(["start"])]) {
    expect(code).toBe(0);
    expect(stdout).toMatch(new RegExp(`^ {2}https +${tlsUrl}$`, "m"));
    expect(stderr).toContain(`The certificate of ${tlsUrl} expired on 2021-01-01`);
  }
  expect(await scene.json(["status"])).toMatchObject({ tlsUrl });
});

describe("a second start", () => {
  test("reports that a daemon runs, and that it keeps its port and its pi", async () => {
    await using scene = await Scene.open();
    const first = await scene.json<{ readonly pid: number; readonly url: string }>(["start"]);
    const again = await scene.run(["start"]);
    expect(again.code).toBe(0);
    expect(again.stdout).toMatch(new RegExp(`^pi-rpcd .* is already running \\(process ${first.pid}\\)`));
    expect(again.stderr).toBe("");
    const other = await scene.run(["start", "--port", "1", "--pi", process.execPath]);
    expect(other.code).toBe(0);
    expect(other.stderr).toContain(`has other options: it listens at ${first.url} and uses ${scene.env["PI_RPCD_PI"]}`);
    expect(await scene.json(["start", "--port", new URL(first.url).port])).toEqual({ ...first, started: false });
  });

  test("at the same moment starts one daemon, and both commands find it", async () => {
    await using scene = await Scene.open();
    const both = await Promise.all([scene.json(["start"]), scene.json(["start"])]);
    expect(both.map(({ started }) => started).toSorted()).toEqual([false, true]);
    expect(both[0]?.["pid"]).toBe(both[1]?.["pid"]);
  });
});

describe("a start that fails", () => {
  test("names a pi that is missing, and leaves no directory", async () => {
    await using scene = await Scene.open();
    const { code, stderr } = await scene.run(["start", "--pi", "no-such-pi.js", "--json"]);
    expect([code, errorName(stderr)]).toEqual([1, "pi_not_found"]);
    expect(stderr).toContain(join(scene.cwd, "no-such-pi.js"));
    expect(scene.daemonFile).toBeUndefined();
    expect(existsSync(join(scene.stateDir, "daemon.log"))).toBe(false);
  });

  test("reports a pi that is too old to every command that needs a daemon", async () => {
    await using scene = await Scene.open();
    const old = join(scene.root, "old-pi.mjs");
    writeFileSync(old, 'console.log("0.40.0");\n');
    const { code, stderr } = await scene.run(["new"], { env: { PI_RPCD_PI: "../old-pi.mjs" } });
    expect(code).toBe(1);
    expect(stderr).toMatch(/^pi-rpcd: PI_RPCD_PI=\S+old-pi\.mjs is pi 0\.40\.0; .*\(pi_too_old\)\n$/);
    expect(scene.daemonFile).toBeUndefined();
  });

  test("names a port that is in use", async () => {
    await using scene = await Scene.open();
    const other = createServer().listen(0, "127.0.0.1");
    await once(other, "listening");
    const { port } = other.address() as AddressInfo;
    const { code, stderr } = await scene.run(["start", "--port", String(port), "--json"]);
    other.close();
    expect([code, errorName(stderr)]).toEqual([1, "port_in_use"]);
    expect(scene.daemonFile).toBeUndefined();
    expect((await scene.run(["start"])).code).toBe(0);
  });

  test("names a state directory whose socket path is too long, and does not create it", async () => {
    await using scene = await Scene.open();
    const long = join(scene.root, "x".repeat(120), "state");
    const { code, stderr } = await scene.run(["start", "--state-dir", long, "--json"]);
    expect([code, errorName(stderr)]).toEqual([1, "socket_path_too_long"]);
    expect(existsSync(join(scene.root, "x".repeat(120)))).toBe(false);
  });

  test("names a state directory that is a file", async () => {
    await using scene = await Scene.open();
    writeFileSync(join(scene.root, "file"), "");
    const { code, stderr } = await scene.run(["start", "--state-dir", join(scene.root, "file"), "--json"]);
    expect([code, errorName(stderr)]).toEqual([1, "state_dir_unusable"]);
  });

  test("names a log that cannot be written", async () => {
    await using scene = await Scene.open();
    const { code, stderr } = await scene.run(["start", "--log-file", scene.cwd, "--json"]);
    expect([code, errorName(stderr)]).toEqual([1, "log_unusable"]);
    expect(stderr).toContain(scene.cwd);
  });

  test("in the foreground reports the error too", async () => {
    await using scene = await Scene.open();
    await scene.json(["start"]);
    const { code, stderr } = await scene.run(["start", "--foreground", "--json"]);
    expect([code, errorName(stderr)]).toEqual([1, "daemon_already_running"]);
  });
});

describe("a daemon in the foreground", () => {
  test.each(["SIGTERM", "SIGINT", "SIGHUP"] as const)("ends gracefully with %s", async (signal) => {
    await using scene = await Scene.open();
    const daemon = scene.start(["start", "--foreground"]);
    await daemon.said(/listens at http/);
    expect(scene.daemonFile?.pid).toBe(daemon.pid);
    daemon.kill(signal);
    expect((await daemon.ended).code).toBe(0);
    expect(scene.daemonFile).toBeUndefined();
  });

  test("whose state directory is removed fails, and the next start reports it if the log was lost too", async () => {
    await using scene = await Scene.open();
    mkdirSync(scene.stateDir, { mode: 0o700 });
    const daemon = scene.start(["start", "--foreground", "--log-file", join(scene.stateDir, "daemon.log"), "--json"]);
    await daemon.said(/"started":true/);
    renameSync(scene.stateDir, join(scene.root, "moved"));
    const { code, stderr } = await daemon.ended;
    expect([code, errorName(stderr)]).toEqual([1, "state_directory_lost"]);
    const next = await scene.run(["start"]);
    expect([next.code, next.stderr]).toEqual([0, expect.stringContaining(`${scene.stateDir} was removed or replaced`)]);
  });

  test("prints where it listens, and never its token", async () => {
    await using scene = await Scene.open();
    const daemon = scene.start(["start", "--foreground", "--log-level", "trace"]);
    await daemon.said(/listens at http/);
    const secret = scene.daemonFile?.token ?? "";
    const { token } = await scene.json<{ readonly token: string }>(["token", "rotate"]);
    daemon.kill("SIGTERM");
    const { stdout, stderr } = await daemon.ended;
    expect(stderr).toContain('"method":"token/rotate"');
    expect(secret).toMatch(/^[\w-]{43}$/);
    for (const each of [secret, token]) expect(`${stdout}${stderr}`).not.toContain(each);
  });

  test("opens no inspector at SIGUSR1", async () => {
    await using scene = await Scene.open();
    const daemon = scene.start(["start", "--foreground"]);
    await daemon.said(/listens at http/);
    daemon.kill("SIGUSR1");
    await scene.json(["status"]);
    daemon.kill("SIGTERM");
    const { code, stderr } = await daemon.ended;
    expect([code, stderr]).toEqual([0, expect.not.stringContaining("Debugger")]);
  });

  test("ends at once with a second signal", async () => {
    await using scene = await Scene.open();
    const daemon = scene.start(["start", "--foreground"], {
      env: {
        FAKE_PI: "ignore-sigterm,keep-running",
        PI_RPCD_PI: join(import.meta.dirname, "../../../fixtures/fake-pi.mjs"),
      },
    });
    await daemon.said(/listens at http/);
    const { pid } = await scene.json<{ readonly pid: number }>(["new"]);
    process.kill(pid, "SIGSTOP");
    daemon.kill("SIGTERM");
    await daemon.said(/"ending"/);
    daemon.kill("SIGTERM");
    expect((await daemon.ended).code).toBe(143);
    process.kill(pid, "SIGKILL");
  });
});

test.runIf(process.platform === "linux")("a daemon in the background has Node's flag against SIGUSR1", async () => {
  await using scene = await Scene.open();
  const { pid } = await scene.json<{ readonly pid: number }>(["start"]);
  // The flag is in force before any code of the daemon can handle the signal.
  expect(readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0")).toContain("--disable-sigusr1");
});

describe("stop", () => {
  test("recognises the daemon.json of a daemon that has ended", async () => {
    await using scene = await Scene.open();
    await using other = bystander();
    writeDaemonFile(scene, other.pid);
    const { code, stdout } = await scene.run(["stop"]);
    expect(code).toBe(0);
    expect(stdout).toContain(`daemon.json is stale: process ${other.pid}`);
    expect(other.lives).toBe(true);
    expect((await scene.run(["status"])).code).toBe(3);
    expect(await scene.json(["start"])).toMatchObject({ started: true });
  });

  test.runIf(process.platform === "linux")("does not signal the process of a daemon that runs elsewhere", async () => {
    await using scene = await Scene.open();
    await using other = bystander();
    writeDaemonFile(scene, other.pid);
    const info = exampleOf("daemon/info").result as object;
    // A daemon in a container answers on the shared socket, but its process id belongs to another program here.
    const elsewhere = createHttpServer((_, response) => {
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ jsonrpc: "2.0", id: 1, result: { ...info, pid: other.pid } }));
    });
    elsewhere.listen(join(scene.stateDir, "daemon.sock"));
    await once(elsewhere, "listening");
    const { code, stderr } = await scene.run(["stop", "--json"]);
    elsewhere.closeAllConnections();
    elsewhere.close();
    expect([code, errorName(stderr)]).toEqual([1, "foreign_process"]);
    expect(other.lives).toBe(true);
  });

  test("is unnecessary after a kill: the next start takes over", async () => {
    await using scene = await Scene.open();
    const { pid } = await scene.json<{ readonly pid: number }>(["start"]);
    process.kill(pid, "SIGKILL");
    const status = await scene.run(["status", "--json"]);
    expect([status.code, JSON.parse(status.stdout)]).toMatchObject([3, { running: false, reason: "stale" }]);
    const next = await scene.json<{ readonly pid: number }>(["start"]);
    expect(next).toMatchObject({ started: true });
    expect(next.pid).not.toBe(pid);
  });

  test("finds a daemon whose socket was deleted", async () => {
    await using scene = await Scene.open();
    const { pid } = await scene.json<{ readonly pid: number }>(["start"]);
    rmSync(join(scene.stateDir, "daemon.sock"));
    expect(await scene.json(["status"])).toMatchObject({ running: true, pid });
    expect(await scene.json(["stop"])).toMatchObject({ stopped: true, pid });
  });

  test("leaves only the files that the next daemon needs", async () => {
    await using scene = await Scene.open();
    await scene.json(["start"]);
    await scene.json(["new"]);
    await scene.json(["close", "last"]);
    await scene.json(["stop"]);
    const store = ["sessions.jsonl", "store.changes", "store.db", "store.mark"];
    const left = ["creating", "daemon.calls.log", "daemon.log", "k", "lock.db", ...store, "token"];
    expect(readdirSync(scene.stateDir).toSorted()).toEqual(left);
    // The directories stay for the next sessions.
    for (const name of ["creating", "k"]) expect(readdirSync(join(scene.stateDir, name))).toEqual([]);
  });
});
