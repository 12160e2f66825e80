// An extension with a tool that may take long. The agent does not wait for it: after the threshold the model gets a
// placeholder and goes on, and the result reaches it later as a message of its own.
// Load it by `pi --extension slow-tool.ts`. In a project of your own, import from "pi-rpcd/extension".
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
import { Type } from "typebox";
import { createBackgroundRunner, runProcessGroup } from "../../extension/index.ts";

export default function slowTool(pi: ExtensionAPI): void {
  const runner = createBackgroundRunner(pi, {
    autoBackgroundAfterMs: Number(process.env["SLOW_TOOL_THRESHOLD_MS"] ?? 30_000),
    maxJobs: 4,
  });

  pi.registerTool(
    runner.wrap({
      name: "slow_command",
      label: "Slow command",
      description: "Runs a shell command that may take minutes, such as a whole test suite.",
      parameters: Type.Object({ command: Type.String({ description: "The command, for bash." }) }),
      // The tool knows nothing of the background. Its signal aborts with the run, or with the job.
      async execute(_toolCallId, { command }, signal, onUpdate, ctx) {
        const end = await runProcessGroup({
          file: "bash",
          args: ["-c", command],
          cwd: ctx.cwd,
          signal,
          onOutput: (text) => onUpdate?.({ content: [{ type: "text", text }], details: undefined }),
        });
        const { output, exitCode } = end;
        if (exitCode !== 0) throw new Error(`${output.text}\nThe command ended with ${exitCode ?? end.signal}.`);
        return { content: [{ type: "text", text: output.text }], details: undefined };
      },
    }),
  );

  pi.registerCommand("jobs", {
    description: "Lists background jobs; with an id, cancels that one.",
    handler: async (jobId, ctx) => {
      if (jobId === "")
        ctx.ui.notify(
          runner
            .jobs()
            .map((job) => `${job.jobId}: ${job.toolName}`)
            .join("\n") || "None.",
        );
      else ctx.ui.notify(runner.cancel(jobId) ? `${jobId} is cancelled.` : `There is no ${jobId}.`);
    },
  });
}
