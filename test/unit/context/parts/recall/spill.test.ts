import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { readLog, readSpilled, spill, sumOf } from "../../../../../context/parts/recall/spill.ts";

let root = "";
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "spill-"));
});
afterEach(() => rmSync(root, { recursive: true }));

const bytes = Buffer.from("ünder\n");
const sum = sumOf(bytes);

test("a file whose content does not match its name is rewritten", async () => {
  const directory = join(root, "spill");
  spill(directory, bytes, sum);
  writeFileSync(join(directory, sum.sha256), Buffer.alloc(bytes.byteLength));
  spill(directory, bytes, sum);
  expect(await readSpilled(directory, sum)).toBe("ünder\n");
});

test("a text is stored once, and read while it is unchanged", async () => {
  const directory = join(root, "spill");
  spill(directory, bytes, sum);
  const path = join(directory, sum.sha256);
  utimesSync(path, 1, 1);
  spill(directory, bytes, sum);
  expect(readdirSync(directory)).toEqual([sum.sha256]);
  // The removal of old files sees that it is used again.
  expect(statSync(path).mtimeMs).toBeGreaterThan(1_000_000);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(await readSpilled(directory, sum)).toBe("ünder\n");
  writeFileSync(path, "änder\n");
  expect(await readSpilled(directory, sum)).toBeUndefined();
  rmSync(path);
  expect(await readSpilled(directory, sum)).toBeUndefined();
});

test("a failed write throws and leaves nothing", () => {
  expect(() => spill(join(root, "none", "spill"), bytes, sum)).toThrow("ENOENT");
  writeFileSync(join(root, "file"), "");
  expect(() => spill(join(root, "file"), bytes, sum)).toThrow("ENOTDIR");
  mkdirSync(join(root, "taken", sum.sha256), { recursive: true });
  expect(() => spill(join(root, "taken"), bytes, sum)).toThrow("EISDIR");
  expect(readdirSync(join(root, "taken"))).toEqual([sum.sha256]);
});

test("only a log of pi's own is read, whatever a command prints", () => {
  const log = join(tmpdir(), `pi-bash-${sum.sha256.slice(0, 8)}.log`);
  try {
    writeFileSync(log, bytes);
    expect(readLog(log)?.toString()).toBe("ünder\n");
    rmSync(log);
    symlinkSync("/etc/passwd", log);
    expect(readLog(log)).toBeUndefined();
  } finally {
    rmSync(log, { force: true });
  }
  writeFileSync(join(root, "pi-bash-1.log"), "");
  for (const path of ["/etc/passwd", join(root, "pi-bash-1.log"), `${tmpdir()}/pi-../x.log`, log, "pi-bash-1.log"]) {
    expect(readLog(path)).toBeUndefined();
  }
  expect(readFileSync("/etc/passwd").length).toBeGreaterThan(0);
});
