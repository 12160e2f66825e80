import { mkdirSync, truncateSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { startCore } from "../../helpers/core.ts";

test("a session file that pi could not load is refused by name, with what is wrong and where", async () => {
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
