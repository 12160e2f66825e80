import { type Client, isTextDelta, isToolExecutionStart, type SessionHandle, type SettledRun } from "../client/index.ts";
import { type Command, type Context, noStart, oneOf } from "./command.ts";
import { exitCodes } from "./exit-codes.ts";
import { readText } from "./read-text.ts";
import { sessionArgument, sessionOf } from "./session-argument.ts";

export const prompt: Command = {
  name: "prompt",
  summary: "prompt a session and stream its answer until pi has settled",
  arguments: `${sessionArgument} TEXT...`,
  positionals: { min: 2, max: Number.POSITIVE_INFINITY },
  options: {
    "if-running": { value: "WHAT", summary: "refuse, steer or followUp, when a run is on", fallback: "refuse" },
    "no-wait": { summary: "return when pi has taken the prompt" },
    ...noStart,
  },
  startsDaemon: true,
  examples: ["pi-rpcd prompt last 'What does this project do?'", "git diff | pi-rpcd prompt last - --json"],
  run: async (context) => {
    const { positionals, options, output, json } = context;
    const [argument = "", ...words] = positionals;
    const ifRunning = oneOf(options, "if-running", ["refuse", "steer", "followUp"]) ?? "refuse";
    const text = await readText(words);
    const client = await context.connect();
    try {
      const session = await sessionOf(client, argument);
      if (options["no-wait"] !== true) return await stream({ client, session, text, ifRunning }, context);
      const result = await session.prompt(text, { ifRunning });
      if (json) output.json(result);
      else output.line(result.disposition);
      return exitCodes.done;
    } finally {
      await client.close();
    }
  },
};

interface Streaming {
  readonly client: Client;
  readonly session: SessionHandle;
  readonly text: string;
  readonly ifRunning: "refuse" | "steer" | "followUp";
}

async function stream({ session, text, ifRunning }: Streaming, { output, json }: Context): Promise<number> {
  const ended = new AbortController();
  const events = session.events({ signal: ended.signal });
  await events.ready;
  const interruption = abortOnInterrupt(session, ended);
  const settled = session.runUntilSettled(text, { ifRunning });
  // Whatever ends the run ends the printing: a crash gives no agent_settled.
  const printing = print();
  try {
    const run = await settled;
    await Promise.race([printing, Promise.resolve()]);
    return conclude(run);
  } finally {
    ended.abort();
    await printing;
    interruption.stop();
    if (!json) output.line();
  }

  async function print(): Promise<void> {
    try {
      for await (const envelope of events) {
        const { event } = envelope;
        if (json) output.json(envelope);
        else if (isTextDelta(event)) output.write(event.assistantMessageEvent.delta);
        else if (isToolExecutionStart(event)) output.line(output.style("dim", `\n[${event.toolName}] ${brief(event.args)}`));
        if (event.type === "agent_settled") return;
      }
    } catch (error) {
      if (!ended.signal.aborted) throw error;
    }
  }

  function conclude(run: SettledRun): number {
    if (interruption.interrupted) return exitCodes.interrupted;
    if (run.stopReason !== "error" && run.stopReason !== "aborted") return exitCodes.done;
    output.note(run.errorMessage ?? `the run ended: ${run.stopReason}`);
    return exitCodes.failed;
  }
}

/** The first Ctrl-C aborts the run, the second leaves. */
function abortOnInterrupt(session: SessionHandle, ended: AbortController): { readonly interrupted: boolean; stop(): void } {
  let interrupted = false;
  const onSignal = (): void => {
    if (interrupted) process.exit(exitCodes.interrupted);
    interrupted = true;
    session.abort().catch(() => ended.abort());
  };
  process.on("SIGINT", onSignal);
  return {
    get interrupted() {
      return interrupted;
    },
    stop: () => process.off("SIGINT", onSignal),
  };
}

function brief(value: unknown): string {
  const text = JSON.stringify(value) ?? "";
  return text.length > 100 ? `${text.slice(0, 99)}…` : text;
}
