import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Params } from "../../../protocol/methods.ts";
import { createOptions } from "../../../server/context/create-options.ts";
import { requireFiles } from "../../../server/context/part-layers.ts";
import { liesUnder } from "../../../server/core/roots.ts";

let top = "";
const at = (...names: string[]): string => join(top, ...names);
beforeAll(() => {
  top = realpathSync(mkdtempSync(join(tmpdir(), "roots-")));
  for (const name of ["work", "work/project", "workshop", "private"]) mkdirSync(at(name));
  for (const name of ["work/in.ts", "private/secret.ts", "workshop/a.ts"]) writeFileSync(at(name), "");
  symlinkSync(at("private"), at("work/out"));
  symlinkSync(at("private", "secret.ts"), at("work/out.ts"));
  symlinkSync(at("work"), at("alias"));
});
afterAll(() => rmSync(top, { recursive: true }));

describe("roots", () => {
  test.each([
    ["work", true],
    ["work/project", true],
    ["work/in.ts", true],
    ["workshop", false],
    ["workshop/a.ts", false],
    ["private/secret.ts", false],
    [".", false],
  ])("hold %s: %s", async (path, expected) => {
    expect(await liesUnder(at(path), [at("work")])).toBe(expected);
    expect(await liesUnder(at(path), [at("nowhere"), at("alias")])).toBe(expected);
    expect(await liesUnder(at(path), ["/"])).toBe(true);
    expect(await liesUnder(at(path), [])).toBe(true);
  });
});

describe("a path in a call", () => {
  const create = (params: Partial<Params<"session/create">>, profile = {}) =>
    createOptions({ cwd: at("work"), ...params }, { profiles: { lean: profile }, sessionEnv: [], roots: [at("work")] });

  test.each(["work", "work/project", "alias/project", "work/out/../work"])("may lie at %s", async (path) => {
    expect((await create({ cwd: `${top}/${path}` })).options).toEqual({});
  });

  test.each(["workshop", "private", "work/out", "work/../private", "."])("may have no session in %s", async (path) => {
    const refused = create({ cwd: `${top}/${path}` });
    await expect(refused).rejects.toMatchObject({ kind: "cwd_invalid", data: { reason: "outside" } });
  });

  test.each(["extensions", "skills", "promptTemplates"] as const)(
    "is refused outside of them as %s",
    async (option) => {
      expect((await create({ [option]: [at("work/in.ts")] })).options).toEqual({ [option]: [at("work/in.ts")] });
      for (const path of ["private/secret.ts", "work/out.ts", "work/out/secret.ts", "work/../workshop/a.ts"]) {
        await expect(create({ [option]: [at("work/in.ts"), `${top}/${path}`] })).rejects.toMatchObject({
          kind: "path_invalid",
          data: { option, path: `${top}/${path}`, reason: "outside" },
        });
      }
    },
  );

  test("is refused outside of them as sessionDir, unless a profile names it", async () => {
    const refused = create({ sessionDir: at("work/out") });
    await expect(refused).rejects.toMatchObject({ kind: "path_invalid", data: { option: "sessionDir" } });
    const profile = { sessionDir: at("private"), extensions: [at("private/secret.ts")] };
    expect((await create({ profile: "lean" }, profile)).options).toEqual(profile);
    await expect(create({ profile: "lean", skills: [at("private")] }, profile)).rejects.toMatchObject({
      data: { option: "skills" },
    });
  });

  test("is refused outside of them as a text for the model, also if only its file is a link", async () => {
    mkdirSync(at("work", "prompts"));
    writeFileSync(at("work", "prompts", "turn.md"), "Words.");
    const given = { pruning: { prompts: { dir: at("work", "prompts") } } };
    await requireFiles(given, [at("work")]);
    writeFileSync(at("private", "secret.md"), "{{secret}}");
    symlinkSync(at("private", "secret.md"), at("work", "prompts", "system.md"));
    await expect(requireFiles(given, [at("work")])).rejects.toMatchObject({
      kind: "path_invalid",
      data: { option: "pruning.prompts.dir", reason: "outside" },
    });
    await expect(requireFiles(given, [])).rejects.toMatchObject({ data: { reason: "unusable" } });
  });
});
