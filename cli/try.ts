import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { orAborted } from "../provider/abortable.ts";
import { attachTo, closeScreen, openScreen } from "./attach.ts";
import { howToLogin } from "./credentials.ts";
import { survivorsOf } from "./demo/daemon.ts";
import { CommandError, UsageError } from "./errors.ts";
import { exitCodes } from "./exit-codes.ts";
import type { Invocation } from "./invocation.ts";
import { HostProcess, type Stage } from "./try/host-process.ts";
import { withClient } from "./with-client.ts";

type Try = Invocation<"try">;

/** Attaches the terminal to a temporary session with a scripted model, and leaves no process and no file. */
export async function tryOut(invocation: Try): Promise<number> {
  const { options, output, env } = invocation;
  if (output.json || !output.isTerminal || process.stdin.isTTY !== true) {
    const advice = "`pi-rpcd demo` shows a push with its receipt without one.";
    throw new UsageError(`try is a conversation and needs a terminal. ${advice}`, "try");
  }
  const { pi } = options;
  const host = new HostProcess({ pi: pi === undefined ? undefined : resolve(pi), env });
  let stage: Stage;
  try {
    stage = await converse(host, invocation);
  } finally {
    await host.end();
  }
  const left = existsSync(stage.root) ? stage.root : survivorsOf(stage.pids);
  if (left !== undefined) throw new CommandError("left_behind", `${left} was not removed.`);
  output.print("All processes have ended, and the temporary directory is removed.");
  output.print(`${howToLogin}, once. Next: pi-rpcd new && pi-rpcd attach last`);
  return exitCodes.done;
}

/** Resolves when the user leaves. */
async function converse(host: HostProcess, { output, env, signal: interrupt }: Try): Promise<Stage> {
  const broken = new AbortController();
  void host.exited.then(() => broken.abort(new CommandError("host_ended", "The scripted model's process has ended.")));
  const screen = await openScreen(env);
  try {
    screen.line("pi-rpcd try: real pi with a scripted model; no key, no network", "bold");
    screen.activity = { what: "starting pi", since: Date.now() };
    const stage = await orAborted(host.open, interrupt);
    screen.line('Type anything and press Enter, for example "Is the build green?". Ctrl-D leaves.', "dim");
    const signal = AbortSignal.any([interrupt, broken.signal]);
    const options = { "state-dir": stage.stateDir, "no-start": true };
    await withClient({ options, output, env, signal }, (client) =>
      attachTo(client, client.session(stage.sessionId), { output, env, signal, screen, past: 0, isTemporary: true }),
    );
    return stage;
  } finally {
    screen.endStream();
    await closeScreen(screen, output);
  }
}
