import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readBounded } from "../../../server/lib/bounded-file.ts";

test("a small file is read only up to its limit, and a pipe is not awaited", () => {
  const root = mkdtempSync(join(tmpdir(), "bounded-"));
  const at = (name: string) => join(root, name);
  try {
    writeFileSync(at("text"), "abc");
    expect(readBounded(at("text"), 3).toString()).toBe("abc");
    expect(readBounded(at("text"), 2)).toBe("too long");
    expect(readBounded(at("none"), 3)).toBe("absent");
    mkdirSync(at("directory"));
    expect(readBounded(at("directory"), 3)).toBe("no file");
    execFileSync("mkfifo", [at("pipe")]);
    expect(readBounded(at("pipe"), 3)).toBe("no file");
    expect(() => readBounded(at("text/below"), 3)).toThrow("ENOTDIR");
  } finally {
    rmSync(root, { recursive: true });
  }
});
