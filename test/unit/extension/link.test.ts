import { chmodSync, existsSync, linkSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { afterEach, beforeEach, expect, test } from "vitest";
import { endStartEnvironment, takeHelperConfig } from "../../../extension/link/config.ts";
import { Outbound } from "../../../extension/link/outbound.ts";
import { takeOwnedFile } from "../../../extension/link/owned-file.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "pi-helper-link-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

function file(content: string, mode = 0o600): string {
  const path = join(directory, "file");
  writeFileSync(path, content);
  chmodSync(path, mode);
  return path;
}

test("a file of the daemon is read once and deleted", () => {
  const path = file("content");
  expect(takeOwnedFile(path, 100).toString()).toBe("content");
  expect(existsSync(path)).toBe(false);
});

test("a file that is not the daemon's is refused and kept", () => {
  const path = file("content", 0o640);
  expect(() => takeOwnedFile(path, 100)).toThrow(/only this user/);
  chmodSync(path, 0o600);
  expect(() => takeOwnedFile(path, 3)).toThrow(/limit/);
  symlinkSync(path, join(directory, "symlink"));
  expect(() => takeOwnedFile(join(directory, "symlink"), 100)).toThrow();
  mkdirSync(join(directory, "folder"), { mode: 0o700 });
  expect(() => takeOwnedFile(join(directory, "folder"), 100)).toThrow();
  expect(() => takeOwnedFile("file", 100)).toThrow(/absolute/);
  linkSync(path, join(directory, "link"));
  expect(existsSync(path)).toBe(true);
});

test("the configuration is read once, and its variable removed", () => {
  const env: NodeJS.ProcessEnv = { PI_RPCD_HELPER_CONFIG: file('{"link":1,"statusKey":"key","more":true}') };
  expect(takeHelperConfig(env)).toEqual({ link: 1, statusKey: "key" });
  expect(env).toEqual({});
  expect(takeHelperConfig(env)).toBeUndefined();
});

test("the configuration says how long requests wait for a context", () => {
  const text = '{"link":1,"statusKey":"key","isOnlyAsked":true,"contextWithinMs":500}';
  expect(takeHelperConfig({ PI_RPCD_HELPER_CONFIG: file(text) })).toEqual(JSON.parse(text));
  const long = file(text.replace("500", "1e300"));
  expect(takeHelperConfig({ PI_RPCD_HELPER_CONFIG: long })).toMatchObject({ contextWithinMs: 3_600_000 });
  for (const wrong of ["0", "-1", '"1"', "null"]) {
    const path = file(text.replace("500", wrong));
    expect(() => takeHelperConfig({ PI_RPCD_HELPER_CONFIG: path })).toThrow("contextWithinMs");
  }
});

test("the configuration has the MCP servers of a client, which pi checks", () => {
  const text = (mcpServers: unknown) => JSON.stringify({ link: 1, statusKey: "key", mcpServers });
  const servers = [{ name: "m", command: "c", env: { A: "x".repeat(300_000) } }];
  expect(takeHelperConfig({ PI_RPCD_HELPER_CONFIG: file(text(servers)) })).toMatchObject({ mcpServers: servers });
  for (const wrong of [{}, [{ command: "c" }], ["m"]])
    expect(() => takeHelperConfig({ PI_RPCD_HELPER_CONFIG: file(text(wrong)) })).toThrow("invalid mcpServers");
});

test("variables meant only for pi's start are restored, unless they were changed, and jiti caches nothing", () => {
  const startEnvironment = { A: { value: "start", before: "own" }, B: { value: "start" }, C: { value: "start" } };
  const text = JSON.stringify({ link: 1, statusKey: "key", startEnvironment });
  expect(takeHelperConfig({ PI_RPCD_HELPER_CONFIG: file(text) })).toEqual(JSON.parse(text));
  const env: NodeJS.ProcessEnv = { A: "start", B: "start", C: "container's", D: "1" };
  endStartEnvironment(env, startEnvironment);
  expect(env).toEqual({ A: "own", C: "container's", D: "1", JITI_FS_CACHE: "false" });
});

test.for([
  "",
  "[]",
  "{}",
  '{"link":1}',
  '{"link":1,"statusKey":""}',
  '{"link":"1","statusKey":"key"}',
  '{"link":1,"statusKey":"key","startEnvironment":{"A":{}}}',
])("the configuration %j is refused", (content) => {
  const env: NodeJS.ProcessEnv = { PI_RPCD_HELPER_CONFIG: file(content) };
  expect(() => takeHelperConfig(env)).toThrow();
  expect(env).toEqual({});
});

function outbound(): { readonly outbound: Outbound; readonly texts: string[] } {
  const texts: string[] = [];
  const out = new Outbound("key");
  out.bind({ ui: { setStatus: (_key: string, text: string) => texts.push(text) } } as unknown as ExtensionContext);
  return { outbound: out, texts };
}

test("frames carry their time, and one that cannot be sent is dropped", () => {
  const unbound = new Outbound("key");
  unbound.send({ kind: "inserted", deliveryIds: [] });
  unbound.bind({
    get ui() {
      throw new Error("stale");
    },
  } as unknown as ExtensionContext);
  unbound.send({ kind: "inserted", deliveryIds: [] });
  const { outbound: out, texts } = outbound();
  out.send({ kind: "inserted", deliveryIds: ["d1"] });
  expect(JSON.parse(texts[0] ?? "")).toEqual({ kind: "inserted", deliveryIds: ["d1"], at: expect.any(Number) });
});

test("the same fault is reported once a second, others immediately, and none is long", () => {
  const { outbound: out, texts } = outbound();
  for (let n = 0; n < 100; n += 1) out.fault("here", new Error("broken"));
  out.fault("there", new Error("broken"));
  out.fault("there", "x".repeat(10_000));
  expect(texts).toHaveLength(3);
  expect(texts[2]?.length).toBeLessThan(2_000);
});
