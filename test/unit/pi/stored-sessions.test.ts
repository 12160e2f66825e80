import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { listStored } from "../../../server/pi/stored-sessions.ts";

test("an aborted listing reads no further file", async () => {
  const root = mkdtempSync(join(tmpdir(), "stored-"));
  try {
    const directory = join(root, "sessions", "--x--");
    mkdirSync(directory, { recursive: true });
    for (let n = 0; n < 20; n += 1) {
      const header = { type: "session", version: 3, id: `s${n}`, timestamp: "2025-01-01T00:00:00.000Z", cwd: root };
      writeFileSync(join(directory, `${n}.jsonl`), `${JSON.stringify(header)}\n`);
    }
    const left = new AbortController();
    let read = 0;
    const isListed = (): boolean => {
      read += 1;
      if (read === 3) left.abort(new Error("left"));
      return true;
    };
    const env = { PI_CODING_AGENT_DIR: root };
    const request = { env, cwd: undefined, held: new Set<string>(), after: undefined, limit: 100, isListed };
    await expect(listStored({ ...request, signal: left.signal })).rejects.toThrow("left");
    expect(read).toBe(3);
  } finally {
    rmSync(root, { recursive: true });
  }
});
