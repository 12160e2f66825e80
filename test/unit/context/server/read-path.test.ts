import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { readNamed, readOwn } from "../../../../server/context/read-path.ts";

let root: string;
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "read-path-")));
  for (const name of ["inside", "outside", "sessions"]) mkdirSync(join(root, name));
});
afterEach(() => rmSync(root, { recursive: true }));

const { signal } = new AbortController();
const some = { mayReadAny: false, signal };
const any = { mayReadAny: true, signal };
const rules = () => ({ readRoots: [join(root, "inside")], roots: undefined, further: [] });
const upTo = (maxBytes: number) => ({ maxBytes, admit: () => Promise.resolve() });
const forbidden = { kind: "forbidden", message: "Reading contexts from this path is not allowed." };

test("a file that is not regular is refused without waiting", async () => {
  const pipe = join(root, "inside", "pipe");
  execFileSync("mkfifo", [pipe]);
  for (const caller of [some, any]) {
    for (const path of [pipe, join(root, "inside")]) {
      await expect(readNamed(path, caller, rules(), upTo(100))).rejects.toMatchObject(forbidden);
    }
  }
});

test("a directory that is repeatedly replaced by a link never leads outside", async () => {
  const [file, hidden] = [join(root, "inside", "d", "x"), join(root, "outside", "x")];
  mkdirSync(join(root, "inside", "d"));
  writeFileSync(file, "open");
  writeFileSync(hidden, "hidden");
  symlinkSync(join(root, "outside"), join(root, "inside", "link"));
  let swaps = 0;
  let isOver = false;
  const swapping = (async () => {
    while (!isOver) {
      const [d, link, aside] = ["d", "link", "aside"].map((name) => join(root, "inside", name)) as [
        string,
        string,
        string,
      ];
      renameSync(d, aside);
      renameSync(link, d);
      renameSync(aside, link);
      swaps += 1;
      await new Promise((resolve) => setImmediate(resolve));
    }
  })();
  const seen = new Set<string>();
  for (let i = 0; i < 300; i += 1) {
    const outcome = await readNamed(file, some, rules(), upTo(100)).then(
      ({ bytes }) => bytes.toString(),
      (error: { kind?: string }) => error.kind ?? "strange",
    );
    seen.add(outcome);
  }
  isOver = true;
  await swapping;
  expect(swaps).toBeGreaterThan(10);
  expect([...seen].filter((outcome) => outcome !== "open" && outcome !== "forbidden")).toEqual([]);
});

test("a file is read up to its initially checked size, and no longer than allowed", async () => {
  const file = join(root, "inside", "a.json");
  writeFileSync(file, "x".repeat(1_500));
  expect((await readNamed(file, some, rules(), upTo(1_500))).bytes.length).toBe(1_500);
  await expect(readNamed(file, some, rules(), upTo(1_499))).rejects.toMatchObject({
    kind: "context_too_large",
    httpStatus: 413,
    message: "The document has 1 500 bytes; the limit is 1 499 (context.maxDocumentBytes).",
  });
  await expect(readOwn(file, upTo(1_000))).rejects.toMatchObject({ kind: "context_too_large" });
  expect(await readOwn(join(root, "none"), upTo(1_000))).toBeUndefined();
  await expect(readOwn(root, upTo(1_000))).rejects.toMatchObject({ kind: "context_transport_failed" });
});

test("nothing of a file is read before the budget allows it", async () => {
  const file = join(root, "inside", "a.json");
  writeFileSync(file, "before");
  const admit = (bytes: number): Promise<void> => {
    writeFileSync(file, "behind");
    return bytes === 6 ? Promise.resolve() : Promise.reject(new Error(`${bytes}`));
  };
  expect((await readNamed(file, some, rules(), { maxBytes: 100, admit })).bytes.toString()).toBe("behind");
  const full = { maxBytes: 100, admit: () => Promise.reject(new Error("full")) };
  await expect(readNamed(file, some, rules(), full)).rejects.toThrow("full");
  await expect(readOwn(file, full)).rejects.toThrow("full");
});

test("a token limited to some sessions can read only below their directories", async () => {
  const file = join(root, "inside", "a.json");
  writeFileSync(file, "{}");
  const covers = (directory: string) => ({ ...some, covers: ({ cwd }: { cwd: string }) => cwd.startsWith(directory) });
  await expect(readNamed(file, covers(join(root, "outside")), rules(), upTo(100))).rejects.toMatchObject(forbidden);
  expect((await readNamed(file, covers(join(root, "inside")), rules(), upTo(100))).bytes.toString()).toBe("{}");
  const session = join(root, "sessions", "s.jsonl");
  writeFileSync(session, "{}");
  const further = { ...rules(), further: [join(root, "sessions")] };
  expect((await readNamed(session, covers("/nowhere"), further, upTo(100))).path).toBe(session);
  await expect(readNamed(session, some, rules(), upTo(100))).rejects.toMatchObject(forbidden);
});
