import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { SessionHandle } from "../../../client/index.ts";
import type { LogEntry } from "../../../provider/log.ts";
import { answer, call } from "../../../provider/reply.ts";
import { type Stage, startStage } from "../../helpers/stage.ts";

const shared =
  "All code of this repository is formatted by the formatter, and nobody argues about the result of it in a " +
  "review: what the formatter leaves as it is may be written in any way that a reader understands at once.";
const skillBody = `# Reviewing\n\nRead the diff first.\n\n## Tests\n\n${"Each change has a test that failed before. ".repeat(250)}`;

/** Writes three levels of context files with a shared paragraph, and two skills. */
function furnish({ root, cwd, agentDir }: Stage): void {
  writeFileSync(join(agentDir.path, "AGENTS.md"), `# Everywhere\n\n${shared}\n\nBe kind.\n`);
  writeFileSync(
    join(root, "AGENTS.md"),
    `# Project\n\n${shared}\n\n## Backend\n\nUse the server's own logger.\n\n## Frontend\n\nNo new dependencies.\n`,
  );
  writeFileSync(join(cwd, "AGENTS.md"), `# Here\n\n${shared}\n`);
  mkdirSync(join(cwd, "server"));
  writeSkill(agentDir.path, "review", skillBody);
  writeSkill(agentDir.path, "sure", "# Sure\n\nThe word of the day is heliotrope.");
}

function writeSkill(agentDir: string, name: string, body: string): void {
  mkdirSync(join(agentDir, "skills", name), { recursive: true });
  const front = `---\nname: ${name}\ndescription: What to do about ${name} & "more".\n---\n\n`;
  writeFileSync(join(agentDir, "skills", name, "SKILL.md"), `${front}${body}\n`);
}

function systemText(request: LogEntry | undefined): string {
  const system = (request?.messages ?? []).filter(({ role }) => role === "system");
  return system.flatMap(({ texts }) => texts).join("\n");
}

const hash = (text: string): string => createHash("sha256").update(text).digest("hex");
const occurrences = (text: string, part: string): number => text.split(part).length - 1;

function lastUserText(request: LogEntry | undefined): string {
  return request?.messages.findLast(({ role }) => role === "user")?.texts.join("\n") ?? "";
}

async function promptEntries(session: SessionHandle): Promise<{ sections: Record<string, unknown> }[]> {
  const { file } = await session.get();
  const lines = readFileSync(file ?? "", "utf8")
    .trim()
    .split("\n");
  const entries = lines.map((line) => JSON.parse(line) as { customType?: string; data: { sections: object } });
  return entries
    .filter(({ customType }) => customType === "pi-rpcd.prompt")
    .map(({ data }) => data as { sections: Record<string, unknown> });
}

test("context files and skills that are known stand in the prompt once, in the same bytes for the session's life", async () => {
  await using stage = await startStage();
  furnish(stage);
  const create = { cwd: stage.cwd, model: "scripted/model-1", labels: { area: "api" } };
  const session = await stage.client.createSession({
    ...create,
    optimisation: {
      contextFiles: {
        dedupe: true,
        sections: [
          { heading: "Backend", path: "server" },
          { heading: "Front*", label: "area=web" },
        ],
      },
      skills: { prefetch: ["sure"] },
    },
  });
  await session.promptAndWait("Hello.");
  const [first] = stage.provider.requests;
  const system = systemText(first);
  expect(occurrences(system, shared)).toBe(1);
  expect(system).toContain(`[Same text as below, in ${join(stage.cwd, "AGENTS.md")}.]`);
  expect(system).toContain("Use the server's own logger.");
  expect(system).not.toContain("No new dependencies.");
  expect(system).toContain("heliotrope");
  expect(system.indexOf("<skills_prefetched>")).toBeGreaterThan(system.indexOf("<project_context>"));
});
