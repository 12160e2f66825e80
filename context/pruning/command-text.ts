import type { AgentMessage } from "../../extension/pi-types.ts";

type Command = Extract<AgentMessage, { role: "bashExecution" }>;

/** The text that pi sends for a command of the user, word for word, so that requests do not differ. */
export function commandText({ command, output, cancelled, exitCode, truncated, fullOutputPath }: Command): string {
  const shown = output === "" ? "(no output)" : `\`\`\`\n${output}\n\`\`\``;
  const isFailed = exitCode !== undefined && exitCode !== null && exitCode !== 0;
  const end = cancelled ? "\n\n(command cancelled)" : isFailed ? `\n\nCommand exited with code ${exitCode}` : "";
  const rest = truncated && fullOutputPath ? `\n\n[Output truncated. Full output: ${fullOutputPath}]` : "";
  return `Ran \`${command}\`\n${shown}${end}${rest}`;
}
