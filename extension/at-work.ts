import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { HostPort } from "./engine-port.ts";

/** The object of the keeper, which is loaded before pi and outlives all extensions. */
interface Keeper {
  /** Whether pi is at work. A pi without a daemon waits longer for the next one while it is. */
  isAtWork?: () => boolean;
}

const keeperKey = Symbol.for("pi-rpcd.keeper");

/** The keeper of this process. `undefined`: this pi ends with its daemon. */
export function keeper(): Keeper | undefined {
  return (globalThis as { [keeperKey]?: Keeper })[keeperKey];
}

/** A shell command of a client. pi sends no event when it ends, but appends its result to the session. */
interface ShellCommand {
  readonly sessionId: string;
  readonly command: string;
  /** Number of entries before it. */
  readonly after: number;
}

/** Tells the keeper whether pi is at work, by the same reasons for which the daemon does not hibernate a session. */
export function atWork(host: HostPort): void {
  const kept = keeper();
  if (kept === undefined) return;
  const shell = host.memory.kept.of<ShellCommand>("shell-command");
  let isDialogOpen = false;
  // The daemon sends the next command when the former one has ended.
  host.on("at-work", "user_bash", ({ command }, { sessionManager }) => {
    const after = sessionManager.getEntries().length;
    shell.value = { sessionId: sessionManager.getSessionId(), command, after };
  });
  host.on("at-work", "ui_prompt_start", () => {
    isDialogOpen = true;
  });
  host.on("at-work", "ui_prompt_end", () => {
    isDialogOpen = false;
  });
  const look = (ctx: ExtensionContext): boolean => {
    if (shell.value !== undefined && hasEnded(shell.value, ctx)) shell.value = undefined;
    return isDialogOpen || shell.value !== undefined || !ctx.isIdle() || host.isWaitedFor() || isOnlyInMemory(ctx);
  };
  kept.isAtWork = () => {
    try {
      const ctx = host.context();
      return ctx !== undefined && look(ctx);
    } catch {
      // The session is being replaced.
      return true;
    }
  };
}

function hasEnded({ sessionId, command, after }: ShellCommand, { sessionManager }: ExtensionContext): boolean {
  if (sessionManager.getSessionId() !== sessionId) return true;
  return sessionManager
    .getEntries()
    .slice(after)
    .some(
      (entry) =>
        entry.type === "message" && entry.message.role === "bashExecution" && entry.message.command === command,
    );
}

/** Whether the conversation would be lost with this process. */
function isOnlyInMemory({ sessionManager }: ExtensionContext): boolean {
  return (
    sessionManager.getSessionFile() === undefined && sessionManager.getEntries().some(({ type }) => type === "message")
  );
}
