import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { StartError } from "../../server/lib/start-error.ts";
import { StateDirectory } from "../../server/state-directory.ts";

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "sd-"));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function kindOf(attempt: () => unknown): string {
  try {
    attempt();
    return "nothing";
  } catch (error) {
    return (error as StartError).kind;
  }
}

describe("StateDirectory", () => {
  test("is private, holds a token of 256 bits in its own file, and keeps it", () => {
    const path = join(root, "state");
    const first = StateDirectory.acquire(path);
    const token = first.token();
    first.release();
    expect(statSync(path).mode & 0o777).toBe(0o700);
    expect(statSync(join(path, "token")).mode & 0o777).toBe(0o600);
    expect(Buffer.from(token, "base64url")).toHaveLength(32);
    const second = StateDirectory.acquire(path);
    expect(second.token()).toBe(token);
    second.release();
  });

  test("removes others' permissions from an existing directory", () => {
    chmodSync(root, 0o755);
    StateDirectory.acquire(root).release();
    expect(statSync(root).mode & 0o777).toBe(0o700);
  });

  test("is held by one daemon at a time, and names its holder", () => {
    const path = join(root, "state");
    const holder = StateDirectory.acquire(path);
    holder.announce({ pid: 4711, version: "1", protocol: 1, url: "http://127.0.0.1:1", socketPath: "s", token: "t" });
    expect(() => StateDirectory.acquire(path)).toThrow(/process 4711, http:\/\/127.0.0.1:1.*pi-rpcd stop/);
    expect(existsSync(join(path, "daemon.json"))).toBe(true);
    holder.release();
    StateDirectory.acquire(path).release();
  });

  test("removes files of a killed daemon", () => {
    writeFileSync(join(root, "daemon.json"), '{"pid":1}');
    StateDirectory.acquire(root).release();
    expect(existsSync(join(root, "daemon.json"))).toBe(false);
  });

  test("announces the daemon in a file that only its user can read", () => {
    const held = StateDirectory.acquire(root);
    const file = { pid: 1, version: "1", protocol: 1, url: "u", socketPath: "s", token: "t" };
    held.announce(file);
    expect(JSON.parse(readFileSync(join(root, "daemon.json"), "utf8"))).toEqual(file);
    expect(statSync(join(root, "daemon.json")).mode & 0o777).toBe(0o600);
    held.release();
  });

  test("refuses by name a path too long for a socket, a file in its place, and a directory that cannot be created", () => {
    const file = join(root, "file");
    writeFileSync(file, "");
    expect(kindOf(() => StateDirectory.acquire(join(root, "x".repeat(120))))).toBe("socket_path_too_long");
    expect(kindOf(() => StateDirectory.acquire(file))).toBe("state_dir_unusable");
    expect(kindOf(() => StateDirectory.acquire(join(file, "below")))).toBe("state_dir_unusable");
    symlinkSync(join(root, "elsewhere"), join(root, "link"));
    expect(kindOf(() => StateDirectory.acquire(join(root, "link")))).toBe("state_dir_unusable");
  });

  test("refuses a token that others can read, that is a link, or that is invalid", () => {
    const held = StateDirectory.acquire(root);
    const token = join(root, "token");
    writeFileSync(token, "a".repeat(43), { mode: 0o644 });
    chmodSync(token, 0o644);
    expect(kindOf(() => held.token())).toBe("token_unusable");
    rmSync(token);
    writeFileSync(token, "short", { mode: 0o600 });
    expect(kindOf(() => held.token())).toBe("token_unusable");
    rmSync(token);
    writeFileSync(join(root, "target"), "a".repeat(43), { mode: 0o600 });
    symlinkSync(join(root, "target"), token);
    expect(kindOf(() => held.token())).toBe("token_unusable");
    held.release();
  });
});
