import { execFileSync } from "node:child_process";
import { appendFileSync, mkdirSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { startCore } from "../../helpers/core.ts";

test("a session file that pi cannot load is refused with the reason and the line", async () => {
  await using core = await startCore();
  const { registry, cwd } = core;
  const directory = dirname((await registry.create({ cwd }, "made")).file);
  const entry = (id: string, parentId: string | null): object => ({
    ...{ type: "message", id, parentId, timestamp: new Date(0).toISOString() },
    message: { role: "user", content: "Hi." },
  });
  const written = (id: string, entries: readonly object[]): string => {
    const file = join(directory, `0_${id}.jsonl`);
    const header = { type: "session", version: 3, id, timestamp: new Date(0).toISOString(), cwd };
    writeFileSync(file, [header, ...entries].map((line) => `${JSON.stringify(line)}\n`).join(""), { mode: 0o600 });
    return file;
  };
  const sparse = written("sparse", []);
  truncateSync(sparse, 20 * 1024 ** 3);
  const deep = written("deep", []);
  appendFileSync(deep, `{"type":"custom","id":"a","parentId":null,"data":${"[".repeat(600)}${"]".repeat(600)}}\n`);
  const folder = join(directory, "0_folder.jsonl");
  mkdirSync(folder);
  for (const [file, reason, words] of [
    [
      written("cyclic", [entry("a", "c"), entry("b", "a"), entry("c", "b")]),
      "entries_damaged",
      'cycle of parents at the entry "a"',
    ],
    [written("own", [entry("a", "a")]), "entries_damaged", 'cycle of parents at the entry "a"'],
    [
      written("twice", [entry("a", null), entry("b", "a"), entry("a", "b")]),
      "entries_damaged",
      'entry "a" twice (line 4)',
    ],
    [
      written("numbers", [{ ...entry("a", null), id: 1, parentId: 1 }]),
      "entries_damaged",
      "cycle of parents at the entry 1",
    ],
    [deep, "entries_damaged", "deeper than 512 levels"],
    [sparse, "too_large", "21474836480 bytes"],
    [folder, "not_a_file", "is no"],
  ] as const) {
    const refusal = { kind: "session_file_unusable", data: { file, reason }, message: expect.stringContaining(words) };
    await expect(registry.files.open({ file })).rejects.toMatchObject(refusal);
  }
  expect(registry.all().map(({ sessionId }) => sessionId)).toEqual(["made"]);
  const fine = await registry.files.open({
    file: written("fine", [entry("a", null), entry("b", "gone"), entry("c", "a")]),
  });
  expect(fine.state.kind).toBe("idle");
});

test("a pipe or a device at a session file's path never blocks a reader", async () => {
  await using core = await startCore();
  const { registry, cwd, tracker } = core;
  const session = await registry.create({ cwd }, "piped");
  const { file, sessionId } = session;
  appendFileSync(file, `${JSON.stringify({ type: "message", id: "a", message: { role: "user", content: "Hi." } })}\n`);
  await tracker.accept({ sessionId, customType: "n", content: "x", deliveryId: "p" });
  await session.supervisor.hibernate(true);
  for (const make of ["pipe", "device"] as const) {
    rmSync(file);
    if (make === "pipe") execFileSync("mkfifo", [file]);
    else symlinkSync("/dev/zero", file);
    // More at once than Node has threads for files.
    const snapshots = Array.from({ length: 6 }, () => session.snapshot());
    for (const snapshot of await Promise.allSettled(snapshots)) {
      expect(snapshot).toMatchObject({ reason: { kind: "session_file_unusable", data: { reason: "not_a_file" } } });
    }
    await expect(session.awake()).rejects.toMatchObject({ kind: "session_file_unusable" });
    await expect(registry.files.open({ sessionId: "planted" })).rejects.toMatchObject({ kind: "session_not_found" });
    if (make === "pipe") execFileSync("mkfifo", [join(dirname(file), "0_planted.jsonl")]);
    await expect(registry.files.open({ sessionId: "planted" })).rejects.toMatchObject({ kind: "session_not_found" });
  }
  const withdrawal = {
    kind: "withdrawn",
    as: "failed",
    at: Date.now(),
    reason: { code: "cancelled", message: "x" },
  } as const;
  await expect(session.pushing.withdraw(["p"], withdrawal)).rejects.toMatchObject({ kind: "session_file_unusable" });
  rmSync(file);
});

test("content appended by another program is not loaded if pi could not load it", async () => {
  await using core = await startCore();
  const session = await core.registry.create({ cwd: core.cwd }, "appended");
  const entry = (id: string, parentId: string | null): string =>
    `${JSON.stringify({ type: "message", id, parentId, message: { role: "user", content: "Hi." } })}\n`;
  appendFileSync(session.file, entry("a", null));
  await session.supervisor.hibernate(true);
  appendFileSync(session.file, entry("b", "c") + entry("c", "b"));
  const refusal = { kind: "session_file_unusable", data: { reason: "entries_damaged" } };
  await expect(session.awake()).rejects.toMatchObject(refusal);
  await expect(session.awake()).rejects.toMatchObject(refusal);
});
