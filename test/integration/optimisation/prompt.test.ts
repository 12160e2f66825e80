import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { estimateText } from "../../../context/document/estimate.ts";
import type { OptimisationOptions } from "../../../protocol/optimisation/options.ts";
import { resolveOptimisation } from "../../../protocol/optimisation/resolve.ts";
import { Gate } from "../../../provider/gate.ts";
import type { LogEntry } from "../../../provider/log.ts";
import { answer, call, delayed, hold } from "../../../provider/reply.ts";
import { startProvider } from "../../../provider/server.ts";
import { type Pi, type PiOptions, push, startPi } from "../extension/driver.ts";

const shared =
  "All code of this repository is formatted by the formatter, and nobody argues about the result of it in a " +
  "review: what the formatter leaves as it is may be written in any way that a reader understands at once.";
const reviewBody = `# Reviewing\n\nRead the diff first.\n\n## Tests\n\n${"Each change has a test that failed before. ".repeat(250)}\n\n## Words\n\nBe kind.`;
const sureBody = `# Sure\n\n${"The word of the day is heliotrope. ".repeat(20)}`;
const image = {
  type: "image",
  mimeType: "image/png",
  data: "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
} as const;

/** Three levels of context files with a shared paragraph, and two skills. */
const furnish: NonNullable<PiOptions["furnish"]> = ({ directory, cwd, agentDir }) => {
  writeFileSync(join(agentDir, "AGENTS.md"), `# Everywhere\n\n${shared}\n\nBe kind.\n`);
  const project = `# Project\n\n${shared}\n\n## Backend\n\nUse the server's own logger.\n\n## Frontend\n\nNo dependencies.\n`;
  writeFileSync(join(directory, "AGENTS.md"), project);
  writeFileSync(join(cwd, "AGENTS.md"), `# Here\n\n${shared}\n`);
  mkdirSync(join(cwd, "server"));
  for (const [name, body] of Object.entries({ review: reviewBody, sure: sureBody })) writeSkill(agentDir, name, body);
};

function writeSkill(agentDir: string, name: string, body: string): void {
  mkdirSync(join(agentDir, "skills", name), { recursive: true });
  const front = `---\nname: ${name}\ndescription: What to do about ${name} & "more".\n---\n\n`;
  writeFileSync(join(agentDir, "skills", name, "SKILL.md"), `${front}${body}\n`);
}

function options(optimisation: OptimisationOptions): Omit<PiOptions, "provider"> {
  const parts = {
    optimisation: resolveOptimisation(optimisation),
    spillDirectory: "/nonexistent/spill",
    labels: { area: "api" },
  };
  return { findsFiles: true, furnish, parts, models: [{ id: "model-1", input: ["text", "image"] }] };
}

function systemText(request: LogEntry | undefined): string {
  const system = (request?.messages ?? []).filter(({ role }) => role === "system");
  return system.flatMap(({ texts }) => texts).join("\n");
}

function lastUserText(request: LogEntry | undefined): string {
  return request?.messages.findLast(({ role }) => role === "user")?.texts.join("\n") ?? "";
}

const hash = (text: string): string => createHash("sha256").update(text).digest("hex");
const occurrences = (text: string, part: string): number => text.split(part).length - 1;

interface FileEntry {
  readonly type: string;
  readonly id: string;
  readonly customType?: string;
  readonly data: { readonly sections: Readonly<Record<string, { readonly text: string | null }>> };
}

/** The entries in the session's file that record how the prompt was built. */
function decisions({ sessionFile }: Pi): FileEntry[] {
  const lines = readFileSync(sessionFile, "utf8").trim().split("\n");
  return lines.map((line) => JSON.parse(line) as FileEntry).filter(({ customType }) => customType === "pi-rpcd.prompt");
}

/** Prompts pi, and returns the request that carries the prompt once the run is over. */
class PromptedPi {
  readonly pi: Pi;
  #settled = 0;

  constructor(pi: Pi) {
    this.pi = pi;
  }

  async prompt(message: string, fields: Readonly<Record<string, unknown>> = {}): Promise<void> {
    await this.pi.rpc({ type: "prompt", message, ...fields });
    await this.settled();
  }

  async settled(): Promise<void> {
    this.#settled += 1;
    await this.pi.settled(this.#settled);
  }

  /** The log of a pi starts empty. */
  async restart(): Promise<void> {
    await this.pi.restart();
    this.#settled = 0;
  }
}

test("the prompt has each context file's text and each selected skill once, with the same bytes in twenty runs and two pis", async () => {
  await using provider = await startProvider();
  await using pi = await startPi({
    provider,
    api: "scripted-anthropic",
    ...options({
      contextFiles: {
        dedupe: true,
        sections: [
          { heading: "Backend", path: "server" },
          { heading: "Front*", label: "area=web" },
        ],
      },
      skills: { prefetch: ["sure"] },
    }),
  });
  expect(decisions(pi)).toEqual([]);
  const talk = new PromptedPi(pi);
  await talk.prompt("Hello.");
  const system = systemText(provider.requests[0]);
  expect(occurrences(system, shared)).toBe(1);
  expect(system).toContain(`[Same text as below, in ${join(pi.cwd, "AGENTS.md")}.]`);
  expect(system).toContain("Use the server's own logger.");
  expect(system).not.toContain("No dependencies.");
  expect(system.indexOf("<skills_prefetched>")).toBeGreaterThan(system.indexOf("<project_context>"));
  expect(occurrences(system, "heliotrope")).toBe(20);
  expect(decisions(pi).flatMap(({ data }) => Object.keys(data.sections))).toEqual([
    "project_context",
    "skills_prefetched",
  ]);

  // It contains everything that pi marks for the provider's cache.
  const blocks = provider.requests[0]?.body["system"] as { text: string; cache_control?: object }[] | undefined;
  const marked = blocks?.findLastIndex((block) => block.cache_control !== undefined) ?? -1;
  expect(blocks?.findIndex(({ text }) => text.includes("heliotrope"))).toBeLessThanOrEqual(marked);

  // The section has the skill: using it adds a line.
  await talk.prompt("/skill:sure Now.");
  expect(lastUserText(provider.requests.at(-1))).not.toContain("heliotrope");
  expect(lastUserText(provider.requests.at(-1))).toMatch(/in the system prompt[\s\S]*\n\nNow\.$/);
  await mixedRuns(talk, provider, 9);
  await talk.restart();
  // The files of the condition are gone: the session's prompt was made while they existed.
  rmSync(join(pi.cwd, "server"), { recursive: true });
  await mixedRuns(talk, provider, 9);
  expect(provider.requests.length).toBeGreaterThanOrEqual(20);
  expect(new Set(provider.requests.map((request) => hash(systemText(request))))).toEqual(new Set([hash(system)]));
  expect(decisions(pi)).toHaveLength(2);
});

async function mixedRuns(talk: PromptedPi, provider: Awaited<ReturnType<typeof startProvider>>, count: number) {
  const { pi } = talk;
  const kinds: readonly (() => Promise<void>)[] = [
    () => talk.prompt("A plain prompt."),
    () => talk.prompt("With an image.", { images: [image] }),
    () => talk.prompt("/skill:review"),
    () => talk.prompt("/skill!review Whole again."),
    async () => {
      provider.add(answer("I look.", call("bash", { command: "true" })), answer("Done."));
      await talk.prompt("Use a tool.");
    },
    async () => {
      await pi.hold(push(`d${provider.requests.length}`, "A push that starts a run."));
      await talk.settled();
    },
    async () => {
      const gate = new Gate();
      provider.add(delayed(hold(gate), answer("Late.")));
      await pi.rpc({ type: "prompt", message: "Wait." });
      await pi.rpc({ type: "prompt", message: "/skill:sure Steered.", streamingBehavior: "steer" });
      await pi.rpc({ type: "prompt", message: "/skill:review Followed.", streamingBehavior: "followUp" });
      gate.open();
      await talk.settled();
    },
  ];
  for (let at = 0; at < count; at += 1) await kinds[at % kinds.length]?.();
}

test("a skill is sent complete at its first use, as pi sends it, and referred to while its text is still in the context", async () => {
  await using provider = await startProvider();
  const compaction = { enabled: true, reserveTokens: 1_000, keepRecentTokens: 10 };
  await using pi = await startPi({
    provider,
    ...options({ skills: { mode: "pointer" } }),
    settings: { compaction },
    after: ["session-commands"],
  });
  const talk = new PromptedPi(pi);
  const used = async (message: string, fields?: Readonly<Record<string, unknown>>): Promise<string> => {
    await talk.prompt(message, fields);
    return lastUserText(provider.requests.at(-1));
  };
  const path = join(pi.agentDir, "skills", "review", "SKILL.md");
  const whole = `<skill name="review" location="${path}">\nReferences are relative to ${join(path, "..")}.\n\n${reviewBody}\n</skill>`;
  const pointer = /^(?:<skill name="review" location="[^"]*">\n|\[Skill "review": )Its text stands above, unchanged/;

  expect(await used("/skill:review Of main.ts, please.")).toBe(`${whole}\n\nOf main.ts, please.`);
  const repeated = await used("/skill:review  Again. ", { images: [image] });
  expect(repeated).toMatch(pointer);
  expect(repeated).toMatch(/\n\nAgain\.$/);
  expect(estimateText(repeated)).toBeLessThan(60);
  expect(JSON.stringify(provider.requests.at(-1)?.body)).toContain(image.data);
  expect(await used("/skill!review")).toBe(whole);
  expect(await used("/skill!nobody knows")).toBe("/skill!nobody knows");
  expect(await used("Tell me about /skill:review.")).toBe("Tell me about /skill:review.");

  // A summary removes the texts.
  provider.add(answer("We have talked about reviews."));
  await pi.rpc({ type: "compact" });
  expect(await used("/skill:review")).toBe(whole);
  expect(await used("/skill:review")).toMatch(pointer);
  await talk.restart();
  expect(await used("/skill:review")).toMatch(pointer);

  // The text has changed.
  writeSkill(pi.agentDir, "review", "# Reviewing\n\nAsk somebody else.");
  expect(await used("/skill:review")).toContain("Ask somebody else.");
  rmSync(path);
  expect(await used("/skill:review")).toBe("/skill:review");
  expect(await used("/skill!review")).toBe("/skill:review");
});

test("a digest replaces the text of a long skill, which the tool returns, however the prompt is built", async () => {
  await using provider = await startProvider();
  await using pi = await startPi({
    provider,
    ...options({ contextFiles: { dedupe: true }, skills: { mode: "digest", prefetch: ["sure", "gone"] } }),
    after: ["forced-prompt"],
  });
  const talk = new PromptedPi(pi);
  // On 0.87.1 such a run has a prompt without sections.
  await pi.hold(push("first", "A push that starts a run."));
  await talk.settled();
  expect(occurrences(systemText(provider.requests[0]), shared)).toBe(1);
  expect(systemText(provider.requests[0])).toContain("<skills_prefetched>");
  expect(pi.frames("notice")).toMatchObject([
    { name: "optimisation/degraded", data: { part: "skills", reason: expect.stringContaining('"gone"') } },
  ]);

  provider.add(
    answer("I look it up.", call("get_skill_detail", { name: "review", section: "Words" })),
    answer("And whole.", call("get_skill_detail", { name: "review" }), call("get_skill_detail", { name: "rewiev" })),
    answer("Done."),
  );
  await talk.prompt("/skill:review Now.");
  const [, first, second, third] = provider.requests;
  const digest = lastUserText(first);
  expect(digest).toMatch(
    /^<skill name="review"[\s\S]*This is a digest\.[\s\S]*What to do about review & "more"\.[\s\S]*## Tests/,
  );
  expect(digest).toMatch(/\n\nNow\.$/);
  expect(estimateText(digest)).toBeLessThanOrEqual(250);
  expect(reviewBody.length).toBeGreaterThan(10_000);
  const results = (request: LogEntry | undefined) =>
    (request?.messages ?? []).flatMap(({ toolResults }) => toolResults);
  expect(results(second).at(-1)?.text).toBe("## Words\n\nBe kind.");
  expect(results(third).at(-2)?.text).toContain(reviewBody);
  expect(results(third).at(-1)?.text).toContain('There is no skill "rewiev" here');
  // Another extension's text replaces the whole head, including ours.
  for (const request of provider.requests.slice(1)) {
    expect(systemText(request)).toContain("Speak like a pirate.");
    expect(occurrences(systemText(request), shared)).toBe(1);
    expect(systemText(request)).toContain("<skills_prefetched>");
  }

  // The next pi finds another file: pi tells the model of it just as briefly.
  writeFileSync(join(pi.cwd, "AGENTS.md"), `# Here\n\nNew words.\n\n${shared}\n`);
  await talk.restart();
  await talk.prompt("Hello again.");
  expect(systemText(provider.requests.at(-1))).toContain("New words.");
  expect(occurrences(systemText(provider.requests.at(-1)), shared)).toBe(1);
  expect(decisions(pi).filter(({ data }) => "project_context" in data.sections)).toHaveLength(2);
});
