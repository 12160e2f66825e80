import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { afterEach, beforeEach, expect, test } from "vitest";
import { CreatedFiles } from "../../../server/session/created-files.ts";

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "created-"));
});
afterEach(() => rmSync(root, { recursive: true }));

const header = (id: string): string => `${JSON.stringify({ type: "session", version: 3, id })}\n`;
const message = `${JSON.stringify({ type: "message", id: "m", message: { role: "user", content: "Hi." } })}\n`;

test("of what a killed daemon was creating, only files without a message are deleted, and only those that it noted", async () => {
  const stateDir = join(root, "state");
  mkdirSync(stateDir);
  const of = (daemonId: string): CreatedFiles => new CreatedFiles({ daemonId, stateDir }, pino({ level: "silent" }));
  const path = (id: string): string => join(root, `${id}.jsonl`);
  const killed = of("killed");
  for (const id of ["empty", "written", "known", "ended", "gone"]) {
    await killed.begin(id, path(id));
    if (id !== "gone") writeFileSync(path(id), header(id) + (id === "written" ? message : ""));
  }
  await killed.end("ended");
  writeFileSync(path("stranger"), header("stranger"));
  await of("next").sweep((id) => id === "known");
  const left = ["empty", "written", "known", "ended", "stranger"].filter((id) => existsSync(path(id)));
  expect(left).toEqual(["written", "known", "ended", "stranger"]);
  expect(existsSync(join(stateDir, "creating"))).toBe(false);
});
