import { expect, test } from "vitest";
import { isSpawnValue, shownName, spawnName } from "../../../server/pi/safe-values.ts";
import { planSpawn } from "../../../server/pi/spawn-options.ts";

const names = ["", " ", "--help", "-\n-x", "a\0b\nc", "\u0085", "x".repeat(10_000_000), "😀".repeat(300), "\ud800"];

test("a name reported by pi is shown in one line of at most 200 characters, and never with half a character", () => {
  expect(names.map((name) => shownName(name))).toEqual([
    ...[undefined, undefined, "--help", "- -x", "a b c", undefined],
    ...["x".repeat(200), "😀".repeat(200), "\ud800"],
  ]);
});

test.each(names)("a name that pi reports is never an option on another pi's command line: %#", (name) => {
  const given = spawnName(name);
  const { args } = planSpawn({
    program: { kind: "script", path: "/pi", version: "1.5.2" } as never,
    ...{ helper: "/helper.ts", helperConfig: "/c", childId: "child", cwd: "/", env: {} },
    options: given === undefined ? {} : { name: given },
  });
  expect(args.includes("--name")).toBe(given !== undefined);
});

test("a model or a level reported by pi is kept for its next start if it is neither an option nor an endless word", () => {
  const values = ["", "-x", "--a/b", " a", "a\0", "a\nb", "x".repeat(513)];
  expect(values.filter(isSpawnValue)).toEqual([]);
  expect(isSpawnValue("provider/model:with-8k_tokens")).toBe(true);
});
