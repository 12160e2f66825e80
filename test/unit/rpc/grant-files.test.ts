import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { Grant } from "../../../server/rpc/grant.ts";

test.each([
  ["a file that is there", "file.md", true],
  ["one that is not", "none/of/these.md", true],
  ["one reached through a link to the outside", "link/file.md", false],
  ["a missing one reached through such a link", "link/none/x.md", false],
  ["one above", "../x.md", false],
])("a token of a directory may name %s: %s is inside: %s", async (_what, name, isInside) => {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "grant-")));
  onTestFinished(() => rmSync(root, { recursive: true }));
  const [allowed, other] = [join(root, "allowed"), join(root, "other")];
  for (const directory of [allowed, other]) {
    mkdirSync(directory);
    writeFileSync(join(directory, "file.md"), "");
  }
  symlinkSync(other, join(allowed, "link"));
  const grant = new Grant({ name: "guest", capabilities: ["prompt"], cwds: [allowed] });
  const named = grant.inside([join(allowed, name)]);
  if (isInside) expect(await named).toEqual([join(allowed, name)]);
  else await expect(named).rejects.toMatchObject({ kind: "forbidden" });
});
