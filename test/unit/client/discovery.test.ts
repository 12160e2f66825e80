import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { checkSecrecy, isLoopback, isSameAddress, nameOf, rpcUrl, webSocketUrl } from "../../../client/address.ts";
import { isAlive, readDaemonFile, stateDirectory } from "../../../client/discovery.ts";

describe("stateDirectory", () => {
  const rows: readonly [string | undefined, NodeJS.ProcessEnv, string][] = [
    ["/given", { PI_RPCD_STATE_DIR: "/env", XDG_STATE_HOME: "/xdg", HOME: "/home/u" }, "/given"],
    ["relative", {}, join(process.cwd(), "relative")],
    [undefined, { PI_RPCD_STATE_DIR: "/env", XDG_STATE_HOME: "/xdg", HOME: "/home/u" }, "/env"],
    ["", { PI_RPCD_STATE_DIR: "", XDG_STATE_HOME: "/xdg", HOME: "/home/u" }, "/xdg/pi-rpcd"],
    [undefined, { XDG_STATE_HOME: "/xdg", HOME: "/home/u" }, "/xdg/pi-rpcd"],
    [undefined, { XDG_STATE_HOME: "not/absolute", HOME: "/home/u" }, "/home/u/.local/state/pi-rpcd"],
    [undefined, { XDG_STATE_HOME: "", HOME: "/home/u" }, "/home/u/.local/state/pi-rpcd"],
    [undefined, {}, join(homedir(), ".local/state/pi-rpcd")],
  ];
  it.each(rows)("for %j and %j is %s", (stateDir, env, expected) => {
    expect(stateDirectory(stateDir, env)).toBe(expected);
  });

  it("is unknown if HOME is empty and nothing else names it", () => {
    expect(() => stateDirectory(undefined, { HOME: "" })).toThrow("variable HOME is empty");
    expect(stateDirectory("/given", { HOME: "" })).toBe("/given");
  });
});

describe("readDaemonFile", () => {
  const good = {
    pid: 7,
    version: "0.1.0",
    protocol: 1,
    url: "http://127.0.0.1:4711",
    socketPath: "/run/daemon.sock",
    token: "secret",
  };
  let stateDir: string;
  beforeEach(() => {
    stateDir = mkdtempSync(join(tmpdir(), "discovery-"));
  });
  afterEach(() => rmSync(stateDir, { recursive: true }));
  const write = (text: string): void => writeFileSync(join(stateDir, "daemon.json"), text);

  it("returns the file's fields and no others", async () => {
    write(JSON.stringify({ ...good, later: true }));
    expect(await readDaemonFile(stateDir)).toEqual(good);
  });

  it("reports that the file is missing, with advice", async () => {
    const path = join(stateDir, "daemon.json");
    const message = `No pi-rpcd daemon was found: ${path} does not exist. Start one with \`pi-rpcd start\`.`;
    await expect(readDaemonFile(stateDir)).rejects.toMatchObject({
      kind: "daemon_not_running",
      reason: "missing",
      message,
    });
    await expect(readDaemonFile(join(stateDir, "nowhere"))).rejects.toMatchObject({ reason: "missing" });
  });

  it("reports that the file cannot be read", async () => {
    mkdirSync(join(stateDir, "daemon.json"));
    await expect(readDaemonFile(stateDir)).rejects.toMatchObject({
      reason: "unreadable",
      message: expect.stringContaining("EISDIR"),
    });
  });

  it("reports that the file belongs to another user, who could impersonate the daemon", async () => {
    write(JSON.stringify(good));
    const own = process.getuid?.() ?? 0;
    vi.spyOn(process, "getuid").mockReturnValue(own + 1);
    onTestFinished(() => void vi.restoreAllMocks());
    await expect(readDaemonFile(stateDir)).rejects.toMatchObject({
      reason: "unreadable",
      message: expect.stringContaining("belongs to another user"),
    });
  });

  const malformed: readonly [string, string][] = [
    ["no JSON", "{"],
    ["an empty file", ""],
    ["null", "null"],
    ["an array", "[]"],
    ["no pid", JSON.stringify({ ...good, pid: undefined })],
    ["a pid that would mean a process group", JSON.stringify({ ...good, pid: -1 })],
    ["no version", JSON.stringify({ ...good, version: 1 })],
    ["no protocol", JSON.stringify({ ...good, protocol: "1" })],
    ["a URL outside loopback", JSON.stringify({ ...good, url: "http://10.0.0.1:4711" })],
    ["a host that begins like loopback", JSON.stringify({ ...good, url: "http://127.0.0.1.example.com" })],
    ["a user name like loopback", JSON.stringify({ ...good, url: "http://127.0.0.1@example.com" })],
    ["no URL", JSON.stringify({ ...good, url: "127.0.0.1:4711" })],
    ["a relative socket", JSON.stringify({ ...good, socketPath: "daemon.sock" })],
    ["an empty token", JSON.stringify({ ...good, token: "" })],
    ["a token that would add a header", JSON.stringify({ ...good, token: "a\r\nX: y" })],
    ["a file that is far too large", JSON.stringify({ ...good, token: "x".repeat(70_000) })],
  ];
  it.each(malformed)("refuses %s", async (_, text) => {
    write(text);
    await expect(readDaemonFile(stateDir)).rejects.toMatchObject({ kind: "daemon_not_running", reason: "malformed" });
  });

  it("names both versions when the daemon has another protocol, whatever else its file says", async () => {
    write(JSON.stringify({ protocol: 2, version: "3.0.0" }));
    await expect(readDaemonFile(stateDir)).rejects.toMatchObject({
      kind: "protocol_mismatch",
      clientProtocol: 1,
      daemonProtocol: 2,
      message: expect.stringContaining("upgrade this package"),
    });
    write(JSON.stringify({ protocol: 0, version: "0.0.1" }));
    await expect(readDaemonFile(stateDir)).rejects.toThrow("restart the daemon");
  });
});

describe("addresses", () => {
  it.each([
    ["http://127.0.0.1:4711", true],
    ["ws://localhost:1", true],
    ["https://[::1]:1", true],
    ["http://127.255.0.3", true],
    ["http://127.1", true],
    ["http://localhost.example.com", false],
    ["http://0.0.0.0:1", false],
    ["http://example.com", false],
    ["not a URL", false],
  ])("%s is loopback: %s", (url, expected) => {
    expect(isLoopback(url)).toBe(expected);
  });

  it.each([
    ["http://127.0.0.1:4711", "ws://127.0.0.1:4711/v1/ws", "http://127.0.0.1:4711/v1/rpc"],
    ["https://pi.example.com/", "wss://pi.example.com/v1/ws", "https://pi.example.com/v1/rpc"],
    ["wss://u:p@pi.example.com/base/?q=1#f", "wss://pi.example.com/base/v1/ws", "https://pi.example.com/base/v1/rpc"],
    ["ws://[::1]:80", "ws://[::1]:80/v1/ws", "http://[::1]/v1/rpc"],
  ])("%s leads to %s and %s", (base, webSocket, rpc) => {
    expect(new URL(webSocketUrl(base)).href).toBe(new URL(webSocket).href);
    expect(rpcUrl(base)).toBe(rpc);
  });

  it("refuses other schemes", () => {
    expect(() => webSocketUrl("file:///etc/passwd")).toThrow(TypeError);
    expect(() => rpcUrl("ftp://127.0.0.1")).toThrow("http:, https:, ws: or wss:");
  });

  it("distinguishes the same address from others", () => {
    const url = (text: string) => ({ kind: "url", url: text }) as const;
    const unix = (socketPath: string) => ({ kind: "unix", socketPath }) as const;
    expect(isSameAddress(url("http://127.0.0.1:1"), url("ws://localhost:1/"))).toBe(true);
    expect(isSameAddress(url("http://127.0.0.1:1"), url("http://127.0.0.1:2"))).toBe(false);
    expect(isSameAddress(url("http://127.0.0.1:1"), url("https://127.0.0.1:1"))).toBe(false);
    expect(isSameAddress(url("http://127.0.0.1:1"), url("http://example.com:1"))).toBe(false);
    expect(isSameAddress(unix("/a"), unix("/a"))).toBe(true);
    expect(isSameAddress(unix("/a"), unix("/b"))).toBe(false);
    expect(isSameAddress(unix("/a"), url("http://127.0.0.1:1"))).toBe(false);
  });

  it("lets a token leave this machine only encrypted, or on request", () => {
    for (const url of ["https://daemon.example", "wss://192.0.2.1:9", "http://127.0.0.1:9", "ws://localhost:9"])
      expect(() => checkSecrecy(url, undefined)).not.toThrow();
    expect(() => checkSecrecy("ws://192.0.2.1:9", true)).not.toThrow();
    expect(() => checkSecrecy("http://u:secret@192.0.2.1:9/?secret", false)).toThrow(/^(?!.*secret).*unencrypted/);
  });

  it("names an address without its credentials", () => {
    expect(nameOf({ kind: "url", url: "http://u:secret@127.0.0.1:4711/x?token=secret" })).toBe("http://127.0.0.1:4711");
    expect(nameOf({ kind: "url", url: "secret" })).not.toContain("secret");
    expect(nameOf({ kind: "unix", socketPath: "/a" })).toBe("/a");
  });
});

it("recognises a running daemon as alive, and an ended one as dead, even if another process has its pid", () => {
  const directory = mkdtempSync(join(tmpdir(), "alive-"));
  expect(isAlive(process.pid, directory)).toBe(process.platform !== "linux");
  const descriptor = openSync(join(directory, "lock.db"), "w");
  expect(isAlive(process.pid, directory)).toBe(true);
  expect(isAlive(2 ** 30, directory)).toBe(false);
  closeSync(descriptor);
  rmSync(directory, { recursive: true });
});
