import { createHash } from "node:crypto";
import {
  appendFileSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { afterEach, beforeEach, expect, test } from "vitest";
import { limits } from "../../../../server/configuration/limits.ts";
import { Spill, type SpillLimits } from "../../../../server/context/spill.ts";

let root = "";
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "spill-"));
  mkdirSync(join(root, "spill"));
});
afterEach(() => rmSync(root, { recursive: true }));

const log = pino({ level: "silent" });
const hour = 3_600_000;

function start(
  changes: Partial<SpillLimits> = {},
  isAnyUnwritten = () => false,
  sessions: readonly { directory: string; hasParts: boolean }[] = [],
) {
  const spill = new Spill({
    directory: join(root, "spill"),
    notes: join(root, "spill.json"),
    sessionRoot: join(root, "sessions"),
    isAnyUnwritten,
    sessions: () => sessions,
    limits: { ...limits.spill, ...changes },
    log,
  });
  return Object.assign(spill, { [Symbol.asyncDispose]: () => spill.close() });
}

/** A text that was stored long ago. Returns its name. */
function spilled(text: string, ageMs = hour): string {
  const name = createHash("sha256").update(text).digest("hex");
  const path = join(root, "spill", name);
  writeFileSync(path, text, { mode: 0o600 });
  const at = new Date(Date.now() - ageMs);
  utimesSync(path, at, at);
  return name;
}

/** A session's file that refers to these texts. */
function session(path: string, ...names: readonly string[]): string {
  const file = join(root, path);
  mkdirSync(join(file, ".."), { recursive: true });
  const lines = names.map((sha256) => {
    const details = { "pi-rpcd.recall": { v: 1, id: "r001", sha256, bytes: 3 } };
    return JSON.stringify({ type: "message", message: { role: "toolResult", details } });
  });
  writeFileSync(file, [JSON.stringify({ type: "session" }), ...lines, ""].join("\n"));
  return file;
}

const left = () => readdirSync(join(root, "spill")).toSorted();

test("a text is removed when no session file refers to it, in any directory", async () => {
  const [own, chosen, flat, nobody] = ["own", "chosen", "flat", "nobody"].map((text) => spilled(text)) as [
    string,
    string,
    string,
    string,
  ];
  session("sessions/--cwd--/1.jsonl", own);
  session("sessions/2.jsonl", flat);
  const elsewhere = session("elsewhere/3.jsonl", chosen);
  session("sessions/--cwd--/notes.txt", nobody);
  {
    await using spill = start();
    spill.note(join(root, "elsewhere"));
    await spill.sweep();
    expect(left()).toEqual([own, chosen, flat].toSorted());
  }
  // A later daemon knows it.
  await using spill = start();
  await spill.sweep();
  expect(left()).toHaveLength(3);
  rmSync(elsewhere);
  spill.wanted();
  await spill.sweep();
  expect(left()).toEqual([own, flat].toSorted());
});

test("a reference is found anywhere in a large file, also in hand-formatted JSON", async () => {
  const names = Array.from({ length: 9 }, (_, at) => spilled(`text ${at}`));
  const gone = spilled("gone");
  const padding = 256 * 1024 - 20;
  const parts = names.map((name, at) => `${"x".repeat(padding + at * 3)}{"sha256"${at % 2 ? ": " : ":"}"${name}"}`);
  mkdirSync(join(root, "sessions"));
  writeFileSync(join(root, "sessions", "1.jsonl"), `${parts.join("\n")}\n{"sha256":"${gone.slice(1)}"}`);
  await using spill = start();
  await spill.sweep();
  expect(left()).toEqual(names.toSorted());
});

test("young texts stay, incomplete ones are removed when they are old, and other programs' files are left alone", async () => {
  const young = spilled("young", 0);
  writeFileSync(join(root, "spill", "README"), "");
  const half = `.${"a".repeat(64)}.01234567-0123-0123-0123-0123456789ab`;
  writeFileSync(join(root, "spill", half), "half");
  utimesSync(join(root, "spill", half), 1, 1);
  await using spill = start();
  await spill.sweep();
  expect(left()).toEqual(["README", young].toSorted());
  await using later = start({ graceMs: -1_000 });
  await later.sweep();
  expect(left()).toEqual(["README"]);
});

test("in doubt nothing is removed", async () => {
  const name = spilled("a");
  const stays = async (spill: Spill & AsyncDisposable) => {
    await using swept = spill;
    await swept.sweep();
    expect(left()).toContain(name);
  };
  await stays(start({}, () => true));
  session("sessions/1.jsonl");
  session("sessions/2.jsonl");
  await stays(start({ maxFiles: 1 }));
  await stays(start({ maxScanBytes: 10 }));
  // A disk that is currently unmounted.
  const away = start();
  away.note(join(root, "away"));
  await stays(away);
  rmSync(join(root, "spill.json"));
  const full = start({ maxDirectories: 1 });
  for (const directory of ["sessions", "spill"]) full.note(join(root, directory));
  await stays(full);
  // The next daemon does not know all of them either.
  await stays(start({ maxDirectories: 1 }));
  await stays(start());
  writeFileSync(join(root, "spill.json"), "{}");
  await stays(start());
  rmSync(join(root, "spill.json"));
  // Nothing shows that it is a file.
  mkdirSync(join(root, "sessions", "dir.jsonl"));
  await using spill = start();
  await spill.sweep();
  expect(left()).toEqual([]);
});

test("a directory that is missing for a very long time is considered gone", async () => {
  const name = spilled("a");
  writeFileSync(join(root, "spill.json"), JSON.stringify([[join(root, "away"), Date.now() - 5_000]]), { mode: 0o600 });
  await using first = start({ keepAwayMs: 600_000 });
  await first.sweep();
  expect(left()).toEqual([name]);
  await using second = start({ keepAwayMs: 1_000 });
  await second.sweep();
  expect(left()).toEqual([]);
});

test("a daemon that is killed during a removal loses nothing", async () => {
  const needed = spilled("needed");
  session("sessions/1.jsonl", needed);
  const other = spilled("other");
  for (const name of [needed, other]) {
    const path = join(root, "spill", name);
    writeFileSync(join(root, "spill", `removed.${name}`), "");
    rmSync(path);
    utimesSync(join(root, "spill", `removed.${name}`), 1, 1);
  }
  await using spill = start();
  await spill.sweep();
  expect(left()).toEqual([needed]);
});

test("without texts nothing is searched, and closing ends a search", async () => {
  rmSync(join(root, "spill"), { recursive: true });
  const spill = start();
  await spill.sweep();
  expect(existsSync(join(root, "spill.json"))).toBe(false);
  mkdirSync(join(root, "spill"));
  const name = spilled("a");
  const swept = spill.sweep();
  await spill.close();
  await swept;
  spill.wanted();
  expect(statSync(join(root, "spill", name)).size).toBe(1);
});

test("directories of open sessions are searched, recorded at their start or not, and known to later daemons", async () => {
  const [mine, others] = [spilled("mine"), spilled("others")];
  session("one/1.jsonl", mine);
  session("two/1.jsonl", others);
  const sessions = [
    { directory: join(root, "one"), hasParts: true },
    { directory: join(root, "two"), hasParts: false },
  ];
  {
    await using spill = start({}, undefined, sessions);
    await spill.sweep();
    expect(left()).toEqual([mine, others].toSorted());
  }
  await using spill = start();
  await spill.sweep();
  expect(left()).toEqual([mine]);
});

test("the age of a session file is ignored: a state directory may have been copied", async () => {
  const name = spilled("needed");
  const file = session("sessions/1.jsonl", name);
  utimesSync(file, 1, 1);
  await using spill = start();
  await spill.sweep();
  expect(left()).toEqual([name]);
});

test("a fork whose origin is deleted during a search keeps its texts", async () => {
  const name = spilled("needed");
  const [origin, fork] = [session("sessions/9.jsonl", name), join(root, "sessions", "0.jsonl")];
  // Large enough that the origin is deleted before it is reached.
  appendFileSync(session("sessions/1.jsonl"), "x".repeat(8 * 1024 * 1024));
  await using spill = start();
  const swept = spill.sweep();
  while (statSync(join(root, "spill.json"), { throwIfNoEntry: false }) === undefined) {
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
  copyFileSync(origin, fork);
  rmSync(origin);
  await swept;
  expect(left()).toEqual([name]);
});

test("the next daemon does not forget a directory that could not be recorded", async () => {
  const name = spilled("needed");
  session("elsewhere/1.jsonl", name);
  const notes = join(root, "spill.json");
  {
    await using spill = start();
    mkdirSync(notes);
    spill.note(join(root, "elsewhere"));
    await spill.sweep();
    expect(left()).toEqual([name]);
    rmSync(notes, { recursive: true });
    spill.note(join(root, "elsewhere"));
  }
  await using spill = start();
  await spill.sweep();
  expect(left()).toEqual([name]);
});
