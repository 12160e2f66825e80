import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { maxPrefetchChars, Prefetch } from "../../../../../context/parts/prompt/prefetch.ts";
import { maxSkillBytes, SkillFiles } from "../../../../../context/parts/prompt/skill-files.ts";
import { skillTool } from "../../../../../context/parts/prompt/skill-tool.ts";
import { Skills } from "../../../../../context/parts/prompt/skills.ts";
import type { OptimisationOptions } from "../../../../../protocol/optimisation/options.ts";
import { unchecked } from "../../../../helpers/partial.ts";
import { FakeSession, head, runOf, user } from "./fake-session.ts";

const root = mkdtempSync(join(tmpdir(), "skills-"));
afterAll(() => rmSync(root, { recursive: true }));

const body = `# Review\n\n${"Read the diff before anything else. ".repeat(200).trim()}`;

function writeSkill(name: string, text: string): { readonly name: string; readonly path: string } {
  const path = join(root, `${Buffer.from(name).toString("hex")}.md`);
  writeFileSync(path, `---\nname: x\n---\n${text}\n`);
  return { name, path };
}

function begin(optimisation: OptimisationOptions["skills"]) {
  const fake = new FakeSession({ skills: { enabled: true, ...optimisation } });
  const skill = writeSkill("review", body);
  fake.commands = [skill];
  const record = fake.record();
  const start = fake.start();
  const { pi, config, estimator, status } = fake.needs;
  const files = new SkillFiles(pi);
  const prefetch = new Prefetch(status, record, files);
  const skills = new Skills({ pi, config: () => config().skills, estimator, files, prefetch, start });
  const whole = `<skill name="review" location="${skill.path}">\nReferences are relative to ${root}.\n\n${body}\n</skill>`;
  const input = (text: string, source: "rpc" | "extension" | "interactive" = "rpc"): string | undefined => {
    const result = skills.input({ type: "input", text, source }, fake.ctx);
    return result?.action === "transform" ? result.text : undefined;
  };
  return { fake, skills, prefetch, start, files, whole, input };
}

describe("a skill that is used again", () => {
  test.each([
    ["ends with the message", (whole: string) => whole, true],
    ["is followed by text of the user", (whole: string) => `${whole}\n\nOf main.ts.`, true],
    ["was edited", (whole: string) => whole.replace("before anything", "after everything"), false],
    ["was masked", () => "[masked: r001]", false],
    ["is quoted further down", (whole: string) => `Look:\n${whole}`, false],
    ["continues after its end", (whole: string) => `${whole} and more`, false],
  ])("is pointed to or whole again, where its text %s", (_how, seen, isPointed) => {
    const { fake, whole, input } = begin({});
    fake.messages = [user(seen(whole))];
    expect(input("/skill:review now")?.includes("stands above, unchanged") ?? false).toBe(isPointed);
  });

  test("is complete again if the last request did not carry it, though the transcript has it", () => {
    const { fake, skills, whole, input } = begin({});
    fake.messages = [user(whole, 5)];
    skills.look([user("Something else.")]);
    expect(input("/skill:review")).toBeUndefined();
    // One added after the last request has not been sent yet.
    fake.messages = [user(whole, Date.now() + 60_000)];
    expect(input("/skill:review")).toContain("stands above");
    skills.look([user(whole, 5)]);
    fake.messages = [user(whole, 5)];
    expect(input("/skill:review")).toContain("stands above");
  });

  test("is left to pi if pi would not look for it, or the part or the mode is off", () => {
    const { fake, whole, input } = begin({});
    fake.messages = [user(whole)];
    expect(input("/skill:review", "extension")).toBeUndefined();
    expect(input(" /skill:review")).toBeUndefined();
    expect(input("/skill:unknown")).toBeUndefined();
    fake.configure({ skills: { mode: "off" } });
    expect(input("/skill:review")).toBeUndefined();
    expect(input("/skill!review a")).toBe("/skill:review a");
    fake.configure({ skills: { enabled: false, mode: "pointer" } });
    expect(input("/skill!review a")).toBeUndefined();
  });

  test("may have any name that pi allows", () => {
    const { fake, files, input } = begin({});
    for (const name of ["__proto__", 'a"b', "ünï", "x\ny", "$&"]) {
      fake.commands = [writeSkill(name, body)];
      fake.messages = [user(files.read(name)?.block ?? "")];
      expect(input(`/skill:${name} now`)).toMatch(/stands above, unchanged[\s\S]*\n\nnow$/);
    }
  });

  test("whose file is missing or huge is left to pi", () => {
    const { fake, input, whole } = begin({ mode: "digest" });
    fake.messages = [user(whole)];
    const path = join(root, "huge.md");
    fake.commands = [
      { name: "gone", path: join(root, "gone.md") },
      { name: "folder", path: root },
      { name: "huge", path },
    ];
    writeFileSync(path, "x".repeat(maxSkillBytes + 1));
    for (const { name } of fake.commands) expect(input(`/skill:${name}`)).toBeUndefined();
  });
});

describe("a digest", () => {
  test("replaces a long skill until its text is in the context", () => {
    const { fake, input, whole } = begin({ mode: "digest" });
    expect(input("/skill:review Now.")).toMatch(/This is a digest[\s\S]*read the file[\s\S]*\n\nNow\.$/);
    fake.activeTools = ["get_skill_detail"];
    expect(input("/skill:review")).toContain("call get_skill_detail");
    expect(input("/skill!review")).toBe("/skill:review");
    fake.messages = [user(whole)];
    expect(input("/skill:review")).toContain("stands above");
    fake.messages = [];
    fake.configure({ skills: { mode: "digest", inlineBelowTokens: 100_000 } });
    expect(input("/skill:review")).toBeUndefined();
  });

  test("counts with pointers towards the savings, by the answers after them", () => {
    const { fake, skills, whole, input } = begin({});
    const turn = (text: string) => {
      fake.add({ type: "message", message: user(text) });
      fake.add({ type: "message", message: { role: "assistant", content: [] } });
    };
    turn(whole);
    fake.messages = [user(whole)];
    turn(input("/skill:review a") ?? "");
    const once = skills.figures(fake.ctx);
    expect(once).toMatchObject({ pointers: 1, digests: 0 });
    turn("More.");
    expect(skills.figures(fake.ctx).saved).toBe(2 * once.saved);
    expect(once.saved).toBeGreaterThan(1_000);
  });
});

describe("the tool", () => {
  const call = async (tool: ReturnType<typeof skillTool>, params: object) =>
    await tool.execute("c1", unchecked(params), undefined, undefined, unchecked(undefined));

  test("returns the current file, and refuses a missing one by its name", async () => {
    const { files } = begin({ mode: "digest" });
    const tool = skillTool(files);
    expect(await call(tool, { name: "review" })).toMatchObject({
      content: [{ type: "text", text: expect.stringContaining(body) }],
    });
    await expect(call(tool, { name: "nobody" })).rejects.toThrow('There is no skill "nobody" here');
    await expect(call(tool, { name: "review", section: "x" })).rejects.toThrow("It has: Review");
  });
});

describe("skills of prefetch", () => {
  const stage = (
    { fake, prefetch, start }: ReturnType<typeof begin>,
    messages = [head({ preamble: "p", cwd: "c" })],
  ) => {
    const [made] = prefetch.stage(messages, start.at(fake.ctx)) ?? [];
    return made?.role === "system" ? made.sections : undefined;
  };

  test("are complete in the last section, once, and referred to from the first prompt on", () => {
    const of = begin({ prefetch: ["review", "review"] });
    expect(of.input("/skill:review")).toContain("stands in the system prompt");
    expect(of.fake.entries).toEqual([]);
    const sections = stage(of) ?? {};
    expect(Object.keys(sections)).toEqual(["preamble", "cwd", "skills_prefetched"]);
    expect(String(sections["skills_prefetched"]).split(of.whole)).toHaveLength(2);
    expect(stage(of)).toEqual(sections);
    expect(of.fake.entries).toMatchObject([
      { data: { v: 1, sections: { skills_prefetched: { text: sections["skills_prefetched"] } } } },
    ]);
  });

  test("stay as they were when the session began, and are complete in a message once their file has changed", () => {
    const of = begin({ prefetch: ["review"] });
    const sections = stage(of);
    writeSkill("review", "# Review\n\nAsk somebody else.");
    expect(stage(of)).toEqual(sections);
    expect(of.input("/skill:review")).toBeUndefined();
    of.fake.configure({ skills: { prefetch: [] } });
    expect(stage(of)).toEqual(sections);
  });

  test("that are missing are omitted and reported", () => {
    const of = begin({ prefetch: ["gone"] });
    expect(stage(of)).toBeUndefined();
    expect(of.fake.degraded).toEqual(['The skill "gone" of prefetch is unknown, or its file is unreadable.']);
    expect(of.fake.entries).toEqual([]);
  });

  test("that are too long together are omitted and reported", () => {
    const of = begin({ prefetch: ["long", "review"] });
    of.fake.commands.push(writeSkill("long", "x".repeat(maxPrefetchChars)));
    expect(String(stage(of)?.["skills_prefetched"])).toContain(of.whole);
    expect(of.fake.degraded).toEqual([expect.stringContaining('The skill "long" of prefetch is too long')]);
  });

  test("are in the prompt that another extension forces on a run, once", () => {
    const of = begin({ prefetch: ["review"] });
    const options = { forceSystemPrompt: "Forced." };
    of.prefetch.runStarts(runOf(options));
    stage(of);
    stage(of);
    expect(options.forceSystemPrompt.split("<skills_prefetched>")).toHaveLength(2);
  });

  test("get a head if the request has none", () => {
    const of = begin({ prefetch: ["review"] });
    expect(stage(of, [user("Hello.")])).toMatchObject({ skills_prefetched: expect.stringContaining(of.whole) });
  });
});
