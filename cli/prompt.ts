import { setImmediate as nextTick } from "node:timers/promises";
import type {
  DialogResponder,
  EventStream,
  PromptOptions,
  SessionEnvelope,
  SessionHandle,
  SettledRun,
} from "../client/index.ts";
import { RunFailedError, RunInterruptedError } from "../client/local-errors.ts";
import { InterruptedError } from "./errors.ts";
import { exitCodes } from "./exit-codes.ts";
import type { Invocation } from "./invocation.ts";
import { messageText } from "./message-text.ts";
import type { Output } from "./output.ts";
import { RunPrinter } from "./run-printer.ts";
import { findSession } from "./session-argument.ts";
import { withClient } from "./with-client.ts";

type Prompt = Invocation<"prompt">;

/** Sends a prompt, and prints its run until it has settled. */
export async function prompt(invocation: Prompt): Promise<number> {
  const { options, output, signal } = invocation;
  const [word = "", ...words] = invocation.arguments;
  const text = await messageText({ command: "prompt", words, stdin: process.stdin, signal });
  const { "if-running": ifRunning } = options;
  const promptOptions: PromptOptions = { ...(ifRunning !== undefined && { ifRunning }) };
  return withClient(invocation, async (client) => {
    const session = await findSession(client, word, signal);
    if (options["no-wait"] !== true) return follow(session, text, { invocation, promptOptions });
    const result = await session.prompt(text, { ...promptOptions, signal });
    if (output.json) output.document(result);
    else output.print(result.promptId);
    return exitCodes.done;
  });
}

interface Following {
  readonly invocation: Prompt;
  readonly promptOptions: PromptOptions;
}

async function follow(session: SessionHandle, text: string, { invocation, promptOptions }: Following): Promise<number> {
  const { output } = invocation;
  const printer = new RunPrinter(output);
  const stream = session.events();
  await stream.ready;
  const lock = new OutputLock();
  const answering = await answersByHand(session, { printer, lock, output });
  try {
    await answering?.ready;
    invocation.signal.throwIfAborted();
    return await print(session, text, { invocation, promptOptions, printer, stream, lock });
  } finally {
    await answering?.[Symbol.asyncDispose]();
  }
}

interface Printing extends Following {
  readonly printer: RunPrinter;
  readonly stream: ReturnType<SessionHandle["events"]>;
  readonly lock: OutputLock;
}

async function print(session: SessionHandle, text: string, printing: Printing): Promise<number> {
  const { invocation, promptOptions, printer, stream, lock } = printing;
  const { output, signal } = invocation;
  const leaving = new AbortController();
  const run = session.runUntilSettled(text, { ...promptOptions, signal: leaving.signal });
  const onSignal = (): void => {
    const interruption: unknown = signal.reason;
    // Only Ctrl-C aborts the run: a closed terminal does not.
    if (interruption instanceof InterruptedError && interruption.signal === "SIGINT") {
      output.note("aborting", "aborting the run; Ctrl-C again leaves at once");
      session.abort().catch((error: unknown) => leaving.abort(error));
    } else {
      leaving.abort(interruption);
    }
  };
  signal.addEventListener("abort", onSignal, { once: true });
  try {
    const over = run.then(
      () => {},
      () => {},
    );
    const settled = await printUntilSettled(stream, run, async (envelope) => {
      // A dialog that is still open after the run belongs to another run.
      if (lock.free !== undefined) await Promise.race([lock.free, over]);
      if (output.json) output.document(envelope);
      else printer.show(envelope.event);
    });
    return exitCode(session.id, settled, signal);
  } finally {
    printer.endLine();
    signal.removeEventListener("abort", onSignal);
    await stream.return();
  }
}

/** Lets the events of the run wait while a dialog is on the terminal. */
class OutputLock {
  #released: PromiseWithResolvers<void> | undefined;

  /** Resolves when it is free; undefined if it is free now. */
  get free(): Promise<void> | undefined {
    return this.#released?.promise;
  }

  acquire(): void {
    this.#released ??= Promise.withResolvers();
  }

  release(): void {
    this.#released?.resolve();
    this.#released = undefined;
  }
}

interface Terminal {
  readonly printer: RunPrinter;
  readonly lock: OutputLock;
  readonly output: Output;
}

/** On a terminal the user answers the dialogs of extensions; a script leaves them to other clients. */
async function answersByHand(
  session: SessionHandle,
  { printer, lock, output }: Terminal,
): Promise<DialogResponder | undefined> {
  const { stdin, stderr } = process;
  if (output.json || stdin.isTTY !== true || stderr.isTTY !== true) return undefined;
  // Loaded late because only a terminal needs it.
  const { terminalDialogHandler } = await import("./prompt-dialogs.ts");
  const ask = terminalDialogHandler({
    input: stdin,
    output: stderr,
    isTerminal: true,
    before: async () => {
      // Everything before the dialog is in the stream's buffer and is printed before the next tick.
      await nextTick();
      lock.acquire();
      printer.endLine();
    },
    after: () => lock.release(),
    onInterrupt: () => process.kill(process.pid, "SIGINT"),
  });
  return session.onDialog(ask);
}

function exitCode(sessionId: string, run: SettledRun, signal: AbortSignal): number {
  if (signal.aborted) return exitCodes.interrupted;
  const { outcome = "settled" } = run;
  if (outcome === "interrupted") throw new RunInterruptedError(sessionId, run);
  if (outcome !== "settled") throw new RunFailedError(run);
  return exitCodes.done;
}

/** Prints the stream until the run has settled. */
async function printUntilSettled(
  stream: EventStream,
  run: Promise<SettledRun>,
  print: (envelope: SessionEnvelope) => Promise<void>,
): Promise<SettledRun> {
  const settled = endWith(run, stream);
  settled.catch(() => {});
  for await (const envelope of stream) await print(envelope);
  return settled;
}

async function endWith(run: Promise<SettledRun>, stream: EventStream): Promise<SettledRun> {
  try {
    return await run;
  } finally {
    // Everything before the end of the run is in the stream's buffer and is read before the next tick.
    await nextTick();
    await stream.return();
  }
}
