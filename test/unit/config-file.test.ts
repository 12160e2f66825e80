import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createValidator } from "../../protocol/validation.ts";
import { readConfiguration } from "../../server/config-file.ts";

const validator = createValidator();
let root = "";
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "config-"));
});
afterEach(() => rmSync(root, { recursive: true }));

function written(text: string): string {
  const path = join(root, "config.json");
  writeFileSync(path, text);
  return path;
}
const read = (option?: string, env: NodeJS.ProcessEnv = { XDG_CONFIG_HOME: root }) =>
  readConfiguration({ option, env }, validator);

test("without a file there are no profiles, and no variables may be set", () => {
  expect(read()).toEqual({ profiles: {}, sessionEnv: [] });
});

test("the file is that of XDG_CONFIG_HOME, else of ~/.config", () => {
  const profiles = { lean: { thinking: "low" } };
  mkdirSync(join(root, "pi-rpcd"));
  mkdirSync(join(root, ".config", "pi-rpcd"), { recursive: true });
  writeFileSync(join(root, "pi-rpcd", "config.json"), JSON.stringify({ profiles }));
  writeFileSync(join(root, ".config", "pi-rpcd", "config.json"), JSON.stringify({ sessionEnv: ["A"] }));
  expect(read()).toEqual({ profiles, sessionEnv: [] });
  expect(read(undefined, { XDG_CONFIG_HOME: "relative", HOME: root })).toEqual({ profiles: {}, sessionEnv: ["A"] });
});

test("a file that is named must be there", () => {
  expect(() => read(join(root, "nowhere.json"))).toThrow(/nowhere\.json does not exist/);
});

test.each([
  ["{", /is not JSON/],
  ['{"profile": {}}', /\/profile is not a known/],
  ['{"profiles": {"lean": {"modle": "x"}}}', /\/profiles\/lean\/modle is not a known/],
  ['{"profiles": {"lean": {"thinking": "much"}}}', /\/profiles\/lean\/thinking must be one of "off"/],
  ['{"profiles": {"lean": {"cwd": "/"}}}', /\/profiles\/lean\/cwd is not a known/],
  ['{"profiles": {"-x": {}}}', /\/profiles/],
  ['{"sessionEnv": ["*"]}', /\/sessionEnv\/0/],
  ["[]", /the whole must be object/],
])("%s is refused, with its place", (text, why) => {
  const path = written(text);
  expect(() => read(path)).toThrow(why);
  expect(() => read(path)).toThrow(path);
});
