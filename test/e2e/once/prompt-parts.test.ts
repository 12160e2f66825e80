import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { LogEntry } from "../../../provider/log.ts";
import { startStage } from "../../helpers/stage.ts";

const shared = "Whoever changes a public function changes its documentation in the same commit. ".repeat(12).trim();

function systemText(request: LogEntry | undefined): string {
  const system = (request?.messages ?? []).filter(({ role }) => role === "system");
  return system.flatMap(({ texts }) => texts).join("\n");
}

test("a session's clone has the same prompt, and inspect reports the savings", async () => {
  await using stage = await startStage();
  const { client, cwd, provider, root } = stage;
  const skill = join(stage.agentDir.path, "skills", "review");
  mkdirSync(skill, { recursive: true });
  const body = "Read the diff before anything else. ".repeat(60).trim();
  writeFileSync(join(skill, "SKILL.md"), `---\nname: review\ndescription: Reviews.\n---\n${body}\n`);
  writeFileSync(join(root, "AGENTS.md"), `# Project\n\n${shared}\n`);
  writeFileSync(join(cwd, "AGENTS.md"), `# Here\n\n${shared}\n`);
  const session = await client.createSession({
    cwd,
    model: "scripted/model-1",
    optimisation: { contextFiles: { dedupe: true }, skills: { mode: "pointer" } },
  });
  for (const text of ["/skill!review", "/skill:review Again.", "Go on."]) await session.runUntilSettled(text);
  const [first, second, third] = provider.requests.map(systemText);
  expect(first?.split(shared)).toHaveLength(2);
  expect([second, third]).toEqual([first, first]);
  expect(JSON.stringify(provider.requests[2]?.body).split(body)).toHaveLength(2);

  const { parts } = await client.call("optimisation/inspect", { sessionId: session.id });
  expect(parts["contextFiles"]).toMatchObject({ state: "on", figures: { repeatedParagraphs: 1, cutSections: 0 } });
  expect(parts["skills"]).toMatchObject({ state: "on", figures: { pointers: 1, digests: 0 } });
  for (const part of ["contextFiles", "skills"] as const) expect(parts[part]?.savedTokens).toBeGreaterThan(0);

  const clone = await session.clone();
  await clone.runUntilSettled("/skill:review Here too.");
  expect(systemText(provider.requests.at(-1))).toBe(first);
  expect(JSON.stringify(provider.requests.at(-1)?.body).split(body)).toHaveLength(2);
});
