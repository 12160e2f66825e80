import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createValidator } from "../../../protocol/validation.ts";
import { configure, type Sources } from "../../../server/configuration/configuration.ts";
import { configurationSchema, settings } from "../../../server/configuration/settings.ts";

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
const read = (sources: Partial<Sources> = {}) => configure({ env: { XDG_CONFIG_HOME: root }, ...sources }, validator);
const profilesAndEnv = ({ values: { profiles, sessionEnv } }: ReturnType<typeof read>) => ({ profiles, sessionEnv });

describe("the file", () => {
  test("is optional: without it there are no profiles, and no variables may be set", () => {
    expect(profilesAndEnv(read())).toEqual({ profiles: {}, sessionEnv: [] });
    expect(read().file).toEqual({ path: join(root, "pi-rpcd", "config.json"), exists: false });
  });

  test("is that of XDG_CONFIG_HOME, otherwise of ~/.config", () => {
    const profiles = { lean: { thinking: "low" } };
    mkdirSync(join(root, "pi-rpcd"));
    mkdirSync(join(root, ".config", "pi-rpcd"), { recursive: true });
    writeFileSync(join(root, "pi-rpcd", "config.json"), JSON.stringify({ profiles }));
    writeFileSync(join(root, ".config", "pi-rpcd", "config.json"), JSON.stringify({ sessionEnv: ["A"] }));
    expect(profilesAndEnv(read())).toEqual({ profiles, sessionEnv: [] });
    expect(profilesAndEnv(read({ env: { XDG_CONFIG_HOME: "relative", HOME: root } }))).toEqual({
      profiles: {},
      sessionEnv: ["A"],
    });
  });

  test("must exist when it is named", () => {
    expect(() => read({ file: join(root, "nowhere.json") })).toThrow(/nowhere\.json does not exist/);
  });

  test("may have comments, a schema for editors, and commas at the end", () => {
    const file = written('// mine\n{\n  "$schema": "./schema.json",\n  /* few */ "maxChildren": 3,\n}\n');
    const { values, origins } = read({ file });
    expect(values.maxChildren).toBe(3);
    expect(origins.maxChildren).toEqual({ kind: "file", path: file, line: 4 });
  });

  test.each<[text: string, words: RegExp]>([
    [
      '{\n"optimisation": {\n"compaction": {"thresholdPercent": 0.3}}}',
      /has mistakes: line 3: optimisation\.compaction\.thresholdPercent: 0\.3 is below 0\.5\.$/,
    ],
    ['{"optimisation": {"cost": {"budgetUsd": 0}}}', /line 1: optimisation\.cost\.budgetUsd: 0 is not above 0\.$/],
    [
      '{"port": -1,\n"optimisation": {"maskin": {}}}',
      /line 1: \/port must be >= 0; line 2: optimisation\.maskin: unknown key; the nearest is masking\.$/,
    ],
    [
      '{"profles": {},\n"profiles": {"p": {\n"thinkng": "high"}}, "colour": 1}',
      /line 1: \/profles is not a known parameter; the nearest is profiles; line 3: \/colour is not a known parameter; line 3: \/profiles\/p\/thinkng is not a known parameter; the nearest is thinking\.$/,
    ],
    [
      '{"profiles": {"p": {\n"optimisation": {\n"masking": {"afterTurns": 0}}}}}',
      /line 3: profiles\.p\.optimisation\.masking\.afterTurns: 0 is below 1\.$/,
    ],
    [
      '{"profiles": {"p": {\n"tools": ["read"],\n"optimisation": {"masking": {\n"excludeTools": ["grep"]}}}}}',
      /line 4: profiles\.p\.optimisation\.masking\.excludeTools\[0\]: the session has no tool "grep": it is not in tools\.$/,
    ],
    [
      '{"optimisation": {"skills": {"enabled": true,\n"mode": "off"}}}',
      /line 2: optimisation\.skills\.mode: "off" contr/,
    ],
    [
      '{"optimisation": {"compaction": {"prompt": "/nowhere/at/all.md"}}}',
      /line 1: optimisation\.compaction\.prompt: "\/nowhere\/at\/all\.md" does not exist\.$/,
    ],
    ['{"optimisation": {"dynamicTools": {"synonyms": "/dev/null"}}}', /synonyms: "\/dev\/null" is not a file\.$/],
  ])("of a wrong configuration of sessions names line and key: %j", (text, words) => {
    expect(() => read({ file: written(text) })).toThrow(words);
  });

  test("has options for sessions, and profiles on top of them", () => {
    const text = '{"optimisation": {"masking": {"afterTurns": 5}}, "profiles": {"p": {"optimisation": {"cost": {}}}}}';
    const { values, origins } = read({ file: written(text) });
    expect(values.optimisation).toEqual({ masking: { afterTurns: 5 } });
    expect(origins.optimisation).toMatchObject({ kind: "file", line: 1 });
  });

  test("has paths that are relative to it", () => {
    expect(read({ file: written('{"pi": "../pi/cli.js"}') }).values.pi).toBe(join(root, "..", "pi", "cli.js"));
  });

  test.each([
    ["", /is empty|is not JSON/],
    ["{", /is not JSON: line 1/],
    ["{\n\n'a': 1}", /is not JSON: line 3/],
    ['{\n"profile": {}}', /line 2: \/profile is not a known/],
    ['{"profiles": {"lean": {\n"modle": "x"}}}', /line 2: \/profiles\/lean\/modle is not a known/],
    ['{"profiles": {"lean": {"thinking": "much"}}}', /\/profiles\/lean\/thinking must be one of "off"/],
    ['{"profiles": {"lean": {"cwd": "/"}}}', /\/profiles\/lean\/cwd is not a known/],
    ['{"profiles": {"-x": {}}}', /\/profiles/],
    ['{"sessionEnv": ["*"]}', /\/sessionEnv\/0/],
    ['{"maxChildren": "3"}', /\/maxChildren must be integer/],
    ['{"port": 70000}', /\/port must be/],
    ['{"port": 1,\n"port": 2}', /line 2: "port" is repeated/],
    ['{"__proto__": {"port": 1}}', /"__proto__" is not a known/],
    ["[]", /the file must be object/],
  ])("%j is refused, with its place", (text, why) => {
    const file = written(text);
    expect(() => read({ file })).toThrow(why);
    expect(() => read({ file })).toThrow(file);
  });
});

describe("layers", () => {
  test("take options first, then the environment, then the file, then defaults", () => {
    const file = written('{"port": 1001, "maxChildren": 11, "warmChildren": 3, "drainMs": 1}');
    const env = { PI_RPCD_PORT: "1002", PI_RPCD_MAX_CHILDREN: "12", PI_RPCD_WARM_CHILDREN: "" };
    const { values, origins } = read({ file, env, options: { port: 1003, drainMs: undefined } });
    expect([values.port, values.maxChildren, values.warmChildren, values.drainMs, values.logLevel]).toEqual([
      1003,
      12,
      3,
      1,
      "info",
    ]);
    expect([origins.port, origins.maxChildren, origins.warmChildren.kind, origins.logLevel]).toEqual([
      { kind: "option", name: "--port" },
      { kind: "environment", name: "PI_RPCD_MAX_CHILDREN" },
      "file",
      { kind: "default" },
    ]);
  });

  test("read lists from variables, separated by commas", () => {
    const env = { PI_RPCD_ALLOWED_ORIGINS: "http://localhost:3000, https://a.example" };
    expect(read({ env }).values.allowedOrigins).toEqual(["http://localhost:3000", "https://a.example"]);
  });

  test("read true and false from variables", () => {
    expect(read({ env: { PI_RPCD_LIVE_RESTORE: "true" } }).values.liveRestore).toBe(true);
    expect(read({ env: { PI_RPCD_LIVE_RESTORE: "false" } }).values.liveRestore).toBe(false);
  });

  test.each([
    [{ PI_RPCD_LIVE_RESTORE: "yes" }, /^PI_RPCD_LIVE_RESTORE must be boolean, but is "yes"\.$/],
    [{ PI_RPCD_ORPHAN_IDLE_MS: "10" }, /^PI_RPCD_ORPHAN_IDLE_MS must be/],
    [{ PI_RPCD_PORT: "web" }, /^PI_RPCD_PORT must be integer, but is "web"\.$/],
    [{ PI_RPCD_MAX_CHILDREN: "0" }, /^PI_RPCD_MAX_CHILDREN must be/],
    [{ PI_RPCD_LOG_LEVEL: "loud" }, /^PI_RPCD_LOG_LEVEL must be one of/],
    [{ PI_RPCD_ALLOWED_ORIGINS: "*" }, /^PI_RPCD_ALLOWED_ORIGINS \(\/0\)/],
  ])("refuse %j by the variable's name", (env, why) => {
    expect(() => read({ env })).toThrow(why);
  });
});

test("defaults match their own schema", () => {
  for (const { schema, default: value } of Object.values(settings)) {
    if (value !== undefined) expect(validator.schema(schema, value)).toEqual([]);
  }
});

test("the schema for editors has every setting, with a description", () => {
  const { properties } = configurationSchema() as {
    properties: Record<string, { description?: string; properties?: object }>;
  };
  // A name with a dot is a field of an object.
  const names = Object.entries(properties).flatMap(([name, { properties: parts }]) =>
    parts === undefined || Object.hasOwn(settings, name) ? [name] : Object.keys(parts).map((part) => `${name}.${part}`),
  );
  expect(names.toSorted()).toEqual(["$schema", ...Object.keys(settings)].toSorted());
  expect(Object.values(properties).filter(({ description }) => description === undefined)).toEqual([]);
});
