import { commands } from "../../cli/commands.ts";
import { exitCodeMeanings } from "../../cli/exit-codes.ts";
import { usageOf } from "../../cli/help.ts";
import type { CommandName } from "../../cli/invocation.ts";

const part = /(<!-- generated: commands -->\n)[\s\S]*?(<!-- end: commands -->)/;

/** The README with its generated reference of the command line. Throws if the markers are missing. */
export function withCommandReference(document: string): string {
  if (!part.test(document)) throw new Error("docs/cli.md lacks the markers of the command reference.");
  return document.replace(part, (_all, begin: string, end: string) => `${begin}${reference()}${end}`);
}

function reference(): string {
  const rows = (Object.keys(commands) as CommandName[]).map((name) => {
    const usage = usageOf(name)
      .replace(/^pi-rpcd /, "")
      .replace(" [OPTIONS]", "");
    return `| \`${usage}\` | ${commands[name].summary} |`;
  });
  const codes = Object.entries(exitCodeMeanings).map(([code, meaning]) => `| ${code} | ${meaning} |`);
  return [
    ...["| command | does |", "|---|---|", ...rows],
    ...["", "| exit code | meaning |", "|---|---|", ...codes, ""],
  ].join("\n");
}
