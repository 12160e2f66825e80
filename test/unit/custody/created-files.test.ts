import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { afterEach, beforeEach, expect, test } from "vitest";
import { CreatedFiles, sumOf } from "../../../server/custody/created-files.ts";

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "created-"));
});
afterEach(() => rmSync(root, { recursive: true }));

const header = (id: string): string => `${JSON.stringify({ type: "session", version: 3, id, cwd: "/" })}\n`;
const message = `${JSON.stringify({ type: "message", id: "m", message: { role: "user", content: "Hi." } })}\n`;

test("of files that a killed daemon was creating, only recorded ones without a message are deleted", async () => {
  const stateDir = join(root, "state");
  mkdirSync(stateDir);
  const of = (daemonId: string): CreatedFiles => new CreatedFiles({ daemonId, stateDir }, pino({ level: "silent" }));
  const path = (id: string): string => join(root, `${id}.jsonl`);
  const killed = of("killed");
  for (const id of ["empty", "written", "known", "ended", "gone", "renewed"]) {
    await killed.begin(id, path(id));
    if (id !== "gone") writeFileSync(path(id), header(id) + (id === "written" ? message : ""));
  }
  await killed.end("ended");
  writeFileSync(path("other"), header("other"));
  // Another session has got the path of a note that was never removed.
  writeFileSync(path("renewed"), header("other"));
  await of("next").sweep((id) => id === "known");
  const left = ["empty", "written", "known", "ended", "other", "renewed"].filter((id) => existsSync(path(id)));
  expect(left).toEqual(["written", "known", "ended", "other", "renewed"]);
  expect(readdirSync(join(stateDir, "creating"))).toEqual([]);
});

test("a file that was created with messages is deleted if nothing was added to it", async () => {
  const stateDir = join(root, "state");
  mkdirSync(stateDir);
  const log = pino({ level: "silent" });
  const path = (id: string): string => join(root, `${id}.jsonl`);
  const killed = new CreatedFiles({ daemonId: "killed", stateDir }, log);
  const note = `${JSON.stringify({ type: "model_change", id: "c", parentId: "m" })}\n`;
  const behind: Readonly<Record<string, string>> = {
    untouched: "",
    noted: note,
    answered: note + message,
    labelled: `${JSON.stringify({ type: "label", id: "l", targetId: "m", label: "mine" })}\n`,
    torn: '{"type":"mes',
    tornNote: `${note}{"type":"model_ch`,
    tornOfExtension: '{"type":"custom","customType":"mi',
    ofExtension: `${JSON.stringify({ type: "custom", id: "x", parentId: "m", customType: "mine", data: {} })}\n`,
    saidByExtension: `${JSON.stringify({ type: "custom_message", id: "x", parentId: "m", content: "Hi." })}\n`,
    known: "",
  };
  for (const [id, text] of Object.entries(behind)) {
    const content = Buffer.from(header(id) + message);
    await killed.begin(id, path(id), sumOf(content));
    writeFileSync(path(id), Buffer.concat([content, Buffer.from(text)]));
  }
  // Its content is not the original one.
  await killed.begin("edited", path("edited"), sumOf(Buffer.from(header("edited") + message)));
  writeFileSync(path("edited"), header("edited") + message.replace("Hi.", "Ho."));
  // The daemon was killed while writing it.
  await killed.begin("unfinished", path("unfinished"), sumOf(Buffer.from(header("unfinished") + message)));
  writeFileSync(`${path("unfinished")}.unfinished`, header("unfinished"));
  await new CreatedFiles({ daemonId: "next", stateDir }, log).sweep((id) => id === "known");
  const left = Object.keys({ ...behind, edited: "" }).filter((id) => existsSync(path(id)));
  expect(left).toEqual(["answered", "labelled", "torn", "saidByExtension", "known", "edited"]);
  expect(existsSync(`${path("unfinished")}.unfinished`)).toBe(false);
  expect(readdirSync(join(stateDir, "creating"))).toEqual([]);
});

test("a note stays until the next one of its session is whole, and what was not finished deletes nothing", async () => {
  const stateDir = join(root, "state");
  mkdirSync(stateDir);
  const path = (id: string): string => join(root, `${id}.jsonl`);
  const of = (daemonId: string): CreatedFiles => new CreatedFiles({ daemonId, stateDir }, pino({ level: "silent" }));
  const killed = of("killed");
  const note = (name: string): string => join(stateDir, "creating", name);
  await killed.begin("renewed", path("renewed"));
  const former = readFileSync(note("renewed"), "utf8");
  // Nothing can be written where the next note begins.
  mkdirSync(note("renewed.partial"));
  await killed.begin("renewed", path("another"), sumOf(Buffer.from("content")));
  expect(readFileSync(note("renewed"), "utf8")).toBe(former);
  rmdirSync(note("renewed.partial"));

  const content = Buffer.from(header("known") + message);
  writeFileSync(path("known"), content);
  writeFileSync(note("known.partial"), JSON.stringify({ file: path("known"), content: sumOf(content) }));
  await of("next").sweep((id) => id === "known");
  expect(existsSync(path("known"))).toBe(true);
  expect(readdirSync(join(stateDir, "creating"))).toEqual([]);
});

test("a creation is noted also if the directory of the notes was deleted", async () => {
  const stateDir = join(root, "state");
  mkdirSync(stateDir);
  const created = new CreatedFiles({ daemonId: "daemon", stateDir }, pino({ level: "silent" }));
  const begin = (id: string): Promise<void> => created.begin(id, join(root, `${id}.jsonl`));
  await begin("first");
  rmSync(join(stateDir, "creating"), { recursive: true });
  await Promise.all(["second", "third"].map(begin));
  expect(readdirSync(join(stateDir, "creating")).toSorted()).toEqual(["second", "third"]);
});
