import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Params } from "../../../../protocol/methods.ts";
import { createValidator } from "../../../../protocol/validation.ts";
import { createOptions } from "../../../../server/context/create-options.ts";
import { noConfiguration } from "../../../../server/context/part-layers.ts";

let root = "";
beforeAll(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "options-")));
  writeFileSync(join(root, "a.ts"), "");
  symlinkSync(join(root, "a.ts"), join(root, "link.ts"));
  mkdirSync(join(root, "sessions"));
});
afterAll(() => rmSync(root, { recursive: true }));

const create = (params: Omit<Params<"session/create">, "cwd">, configuration = noConfiguration) =>
  createOptions({ cwd: "/", ...params }, configuration);

describe("the options of a session", () => {
  test("are those of its profile, overridden by those of the call", async () => {
    const profile = { model: "p/m", tools: ["read"], labels: { a: "1", b: "1" }, env: { P: "profile" } };
    const configuration = { profiles: { lean: profile }, sessionEnv: ["C*"] };
    const env = { CALL: "call" };
    const made = await create({ profile: "lean", tools: ["bash"], labels: { b: "2" }, env }, configuration);
    expect(made).toEqual({
      options: { model: "p/m", tools: ["bash"], env: { P: "profile", CALL: "call" } },
      ephemeral: false,
      profile: "lean",
      labels: { a: "1", b: "2" },
    });
  });

  test.each(["none", "constructor", "__proto__"])("an unknown profile %j is refused by name", async (name) => {
    await expect(create({ profile: name })).rejects.toMatchObject({ kind: "profile_not_found" });
  });

  test("an unknown profile names the configuration file and the command that reads it again", async () => {
    const configuration = { ...noConfiguration, file: "/etc/pi-rpcd/config.json" };
    const message = expect.stringMatching(
      /There are: lean\. .*\/etc\/pi-rpcd\/config\.json .*pi-rpcd start --restart$/,
    );
    await expect(create({ profile: "new" }, configuration)).rejects.toMatchObject({ message });
  });

  test("the provider precedes the model, and is invalid alone", async () => {
    expect((await create({ provider: "p", model: "m" })).options).toEqual({ model: "p/m" });
    expect((await create({ provider: "p", model: "p/m" })).options).toEqual({ model: "p/m" });
    await expect(create({ provider: "p" })).rejects.toMatchObject({ kind: "invalid_params" });
  });

  test("paths are stored with links resolved, and packages as they are", async () => {
    const configuration = { ...noConfiguration, roots: [root] };
    const extensions = ["npm:thing", join(root, "link.ts"), "builtin:mcp"];
    const params = { cwd: root, extensions, sessionDir: join(root, "sessions") };
    const { options } = await createOptions(params, configuration);
    expect(options).toEqual({
      extensions: ["npm:thing", join(root, "a.ts"), "builtin:mcp"],
      sessionDir: join(root, "sessions"),
    });
  });

  test.each([
    ["extensions", "missing"],
    ["skills", "missing"],
    ["promptTemplates", "missing"],
  ] as const)("a path of %s that there is not is named", async (option, reason) => {
    const path = join(root, "nowhere");
    await expect(create({ [option]: [path] })).rejects.toMatchObject({
      kind: "path_invalid",
      data: { option, path, reason },
    });
  });

  test("a session directory must be a directory", async () => {
    const refused = create({ sessionDir: join(root, "a.ts") });
    await expect(refused).rejects.toMatchObject({ kind: "path_invalid", data: { reason: "not_a_directory" } });
  });

  test("a session directory may be missing, and is under the roots even through a link", async () => {
    symlinkSync("/", join(root, "top"));
    const configuration = { ...noConfiguration, roots: [root] };
    const missing = join(root, "sessions", "new", "deep");
    const inRoot = (sessionDir: string) => createOptions({ cwd: root, sessionDir }, configuration);
    expect((await inRoot(missing)).options).toEqual({ sessionDir: missing });
    for (const path of ["/nowhere/new", join(root, "top", "nowhere"), join(root, "..", "nowhere")]) {
      const refused = inRoot(path);
      await expect(refused).rejects.toMatchObject({ kind: "path_invalid", data: { reason: "outside" } });
    }
  });

  test("the id, the files, the environment and the MCP servers of a session are not stored with its options", async () => {
    const file = join(root, "s.jsonl");
    const secrets = { environment: { A: "b" }, mcpServers: [{ name: "m", command: "c", env: { A: "b" } }] };
    const { options } = await create({ sessionId: "s", file, forkFrom: file, ...secrets });
    expect(options).toEqual({});
  });

  test("only variables that the configuration names may be set", async () => {
    await expect(create({ env: { MINE: "1" } })).rejects.toMatchObject({ kind: "forbidden", data: { env: ["MINE"] } });
    const configuration = { profiles: {}, sessionEnv: ["MINE", "APP_*"] };
    const { options } = await create({ env: { MINE: "1", APP_KEY: "2" } }, configuration);
    expect(options.env).toEqual({ MINE: "1", APP_KEY: "2" });
  });

  test.each([
    "NODE_OPTIONS",
    "LD_PRELOAD",
    "DYLD_INSERT_LIBRARIES",
    "PATH",
    "HOME",
    "BASH_ENV",
    "PI_RPCD_CHILD",
    "PI_CODING_AGENT_DIR",
    "PI_OFFLINE",
    "PYTHONPATH",
    "PERL5OPT",
    "RUBYOPT",
    "JAVA_TOOL_OPTIONS",
    "BUN_OPTIONS",
    "GIT_SSH_COMMAND",
    "GIT_CONFIG_COUNT",
    "SSH_ASKPASS",
    "EDITOR",
    "OPENSSL_CONF",
    "XDG_CONFIG_HOME",
    "npm_config_registry",
  ])("%s may be set by nobody, whatever the configuration says", async (name) => {
    const profiles = { bad: { env: { [name]: "x" } } };
    const configuration = { profiles, sessionEnv: [name, `${name.slice(0, 2)}*`] };
    await expect(create({ env: { [name]: "x" } }, configuration)).rejects.toMatchObject({ data: { env: [name] } });
    await expect(create({ profile: "bad" }, configuration)).rejects.toMatchObject({ data: { env: [name] } });
  });
});

describe("the params of session/create", () => {
  const validator = createValidator();
  const findings = (params: object) => validator.params("session/create", { cwd: "/", ...params });

  test.each([
    { name: "-x" },
    { name: "a\nb" },
    { name: "a\0b" },
    { model: "--approve" },
    { model: "a b" },
    { provider: "-p" },
    { tools: ["-read"] },
    { tools: ["a,b"] },
    { tools: [] },
    { extensions: ["relative.ts"] },
    { extensions: ["-e"] },
    { extensions: ["/a\0b"] },
    { extensions: ["~/a.ts"] },
    { skills: ["npm:evil"] },
    { sessionDir: "../up" },
    { systemPrompt: "" },
    { appendSystemPrompt: "a\0b" },
    { noTools: "some" },
    { env: { "A=B": "1" } },
    { env: { A: "x\0y" } },
    { labels: { "": "x" } },
    { labels: { a: "x".repeat(257) } },
    { labels: Object.fromEntries(Array.from({ length: 33 }, (_, at) => [`l${at}`, ""])) },
    { profile: "../x" },
  ])("%j is refused", (params) => {
    expect(findings(params)).not.toEqual([]);
  });

  test.each([
    { systemPrompt: "- a list\n--approve" },
    { appendSystemPrompt: "/etc/hostname" },
    { labels: { "team/a.b-c": "Ünicode\n=" } },
    { extensions: ["/a b/c\n.ts"] },
  ])("%j is taken", (params) => {
    expect(findings(params)).toEqual([]);
  });
});

describe("the optimisation of a session", () => {
  const optimisationOf = async (
    params: Omit<Params<"session/create">, "cwd">,
    configuration: Partial<typeof noConfiguration> = {},
    cwd = root,
  ) => await createOptions({ cwd, ...params }, { ...noConfiguration, ...configuration });

  test("combines configuration, project, profile and call; later ones take precedence", async () => {
    const project = join(root, "project");
    mkdirSync(join(project, ".pi"), { recursive: true });
    const layer = (afterTurns: number) => ({ masking: { afterTurns }, cache: { noiseTokens: afterTurns } });
    writeFileSync(join(project, ".pi", "pi-rpcd.jsonc"), JSON.stringify({ optimisation: layer(2) }));
    const profiles = { p: { optimisation: { masking: { afterTurns: 3 } } } };
    const configuration = { optimisation: layer(1), profiles };
    const turns = async (params: Omit<Params<"session/create">, "cwd">) => {
      const { options } = await optimisationOf(params, configuration, project);
      return [options.optimisation?.masking?.afterTurns, options.optimisation?.cache?.noiseTokens];
    };
    expect(await turns({})).toEqual([1, 1]);
    expect(await turns({ approve: true })).toEqual([2, 2]);
    expect(await turns({ approve: true, profile: "p" })).toEqual([3, 2]);
    expect(await turns({ profile: "p", optimisation: { masking: { afterTurns: 4 } } })).toEqual([4, 1]);
    expect((await optimisationOf({})).options).not.toHaveProperty("optimisation");
  });

  test("is that of the shipped profile lean, unless the configuration has one of that name", async () => {
    const { options, profile } = await optimisationOf({ profile: "lean" });
    expect(profile).toBe("lean");
    expect(Object.keys(options.optimisation ?? {})).toContain("masking");
    const own = await optimisationOf({ profile: "lean" }, { profiles: { lean: { thinking: "low" } } });
    expect(own.options).toEqual({ thinking: "low" });
  });

  test("is refused with the reason if layers contradict", async () => {
    const configured = { optimisation: { toolResults: { tools: { bash: { keep: "head" as const, above: 400 } } } } };
    await expect(optimisationOf({}, configured)).rejects.toMatchObject({
      kind: "invalid_params",
      message: "optimisation.toolResults.tools.bash.above: 400 is below the 500 characters that are kept.",
      data: { findings: [{ path: "/optimisation/toolResults/tools/bash/above" }] },
    });
    await expect(
      optimisationOf({ tools: ["read"], optimisation: { masking: { excludeTools: ["bash"] } } }),
    ).rejects.toMatchObject({ kind: "invalid_params" });
  });

  test("requires existing files, below the roots if there are any", async () => {
    const prompt = join(root, "a.ts");
    const named = (path: string) => ({ optimisation: { compaction: { prompt: path } } });
    expect((await optimisationOf(named(prompt))).options.optimisation).toEqual({ compaction: { prompt } });
    await expect(optimisationOf(named(join(root, "gone")))).rejects.toMatchObject({
      kind: "path_invalid",
      data: { option: "optimisation.compaction.prompt", reason: "unusable" },
    });
    await expect(optimisationOf(named("/dev/zero"))).rejects.toMatchObject({ kind: "path_invalid" });
    const roots = [join(root, "sessions")];
    await expect(optimisationOf(named(prompt), { roots }, join(root, "sessions"))).rejects.toMatchObject({
      kind: "path_invalid",
      data: { reason: "outside" },
    });
  });

  test("ignores a project's layer that is invalid or conflicts with the others, and reports the reason", async () => {
    const project = join(root, "wrong");
    mkdirSync(join(project, ".pi"), { recursive: true });
    const file = join(project, ".pi", "pi-rpcd.jsonc");
    const given = { approve: true, optimisation: { masking: { afterTurns: 4 } } };
    writeFileSync(file, '{"optimisation": {\n"masking": {"afterTurns": 0}}}');
    const wrong = await optimisationOf(given, {}, project);
    expect(wrong.options.optimisation).toEqual(given.optimisation);
    expect(wrong.projectProblem).toBe(`${file} has mistakes: line 2: optimisation.masking.afterTurns: 0 is below 1.`);
    const tools = { bash: { keep: "head", head: 5_000, above: 5_000 } };
    writeFileSync(file, JSON.stringify({ optimisation: { toolResults: { tools } } }));
    const policy = { keep: "head" as const, above: 3_000 };
    const both = { ...given, optimisation: { toolResults: { tools: { bash: policy } } } };
    const torn = await optimisationOf(both, {}, project);
    expect(torn.options.optimisation).toEqual(both.optimisation);
    expect(torn.projectProblem).toMatch(
      /pi-rpcd\.jsonc conflicts with the rest of the configuration: optimisation\.toolR/,
    );
    // It is not trusted.
    expect(await optimisationOf({}, {}, project)).not.toHaveProperty("projectProblem");
  });
});
