import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Random } from "../../../test/soak/random.ts";
import { callsOf, type Trace, type TraceTool } from "./trace.ts";
import { prose } from "./words.ts";

const fixture = join(import.meta.dirname, "..", "..", "fixtures", "trace-tools.mjs");

/** An extension that gives a session the tools of the trace in its working directory. */
export const traceExtension = fixture;

const text = (description: string) => ({ type: "string", description });
const object = (properties: Readonly<Record<string, unknown>>, required: readonly string[]) => ({
  type: "object",
  properties,
  required,
});

/** pi's own tools, by name, with results from the trace. */
const ownTools: readonly TraceTool[] = [
  {
    name: "read",
    description: "Reads a file. Output is truncated to 2000 lines or 50KB, whichever comes first.",
    parameters: object({ path: text("Path of the file.") }, ["path"]),
  },
  {
    name: "bash",
    description: "Executes a command in the working directory. Returns stdout and stderr.",
    parameters: object({ command: text("The command.") }, ["command"]),
  },
  {
    name: "edit",
    description: "Edits a file by exact text replacement.",
    parameters: object(
      {
        path: text("Path of the file."),
        edits: {
          type: "array",
          items: object({ oldText: text("Exact text."), newText: text("The replacement text.") }, [
            "oldText",
            "newText",
          ]),
        },
      },
      ["path", "edits"],
    ),
  },
  {
    name: "grep",
    description: "Searches the contents of files for a pattern.",
    parameters: object({ pattern: text("The pattern."), path: text("Where.") }, ["pattern"]),
  },
  {
    name: "find",
    description: "Finds files by a pattern.",
    parameters: object({ pattern: text("The pattern."), path: text("Where.") }, ["pattern"]),
  },
  { name: "ls", description: "Lists a directory.", parameters: object({ path: text("The directory.") }, []) },
];

/**
 * Writes a trace's project: three directories with context files that share paragraphs. Returns the innermost one.
 */
export function writeTraceProject(trace: Trace, directory: string): string {
  const random = new Random(77);
  const paragraph = (): string => prose(random, 420).replaceAll("\n", " ");
  const shared = Array.from({ length: 6 }, paragraph);
  const levels = ["", "app", join("app", "service")].map((folder) => join(directory, folder));
  for (const [level, folder] of levels.entries()) {
    mkdirSync(folder, { recursive: true });
    const sections = ["Style", "Tests", "Review"].map((title, at) =>
      [`## ${title}`, shared[2 * at] ?? "", paragraph(), shared[2 * at + 1] ?? ""].join("\n\n"),
    );
    writeFileSync(join(folder, "AGENTS.md"), `# Level ${level}\n\n${sections.join("\n\n")}\n`);
  }
  const cwd = levels.at(-1) ?? directory;
  const results: Record<string, { text: string; isError: boolean }[]> = {};
  for (const { tool, args, result, isError } of callsOf(trace)) {
    const key = `${tool} ${JSON.stringify(args)}`;
    results[key] = [...(results[key] ?? []), { text: result, isError }];
  }
  const turnSeconds = trace.prompts.flatMap(({ turns }) => turns.map(({ seconds }) => seconds));
  const pauseSeconds = trace.prompts.map((prompt) => prompt.pauseSeconds);
  const tools = [...ownTools, ...trace.tools];
  writeFileSync(join(cwd, "trace.json"), JSON.stringify({ tools, results, turnSeconds, pauseSeconds }));
  return cwd;
}

/** Writes the skills that traces use, of eight to ten thousand characters each, to pi's configuration directory. */
export function writeTraceSkills(agentDir: string): void {
  const random = new Random(78);
  for (const [name, length] of [
    ["review", 10_000],
    ["release", 8_000],
  ] as const) {
    const folder = join(agentDir, "skills", name);
    mkdirSync(folder, { recursive: true });
    const head = `---\nname: ${name}\ndescription: ${prose(random, 120).replaceAll("\n", " ")}\n---\n\n# ${name}\n\n`;
    const sections = Array.from({ length: 5 }, (_, at) => `## Step ${at + 1}\n\n${prose(random, length / 5)}`);
    writeFileSync(join(folder, "SKILL.md"), `${head}${sections.join("\n\n")}\n`);
  }
}
