import type { Client, LogNotification, SessionHandle, SessionInfo } from "../client/index.ts";
import { type Canvas, PlainCanvas } from "./attach/canvas.ts";
import { recentPast, storedMessages } from "./attach/past.ts";
import type { Screen } from "./attach/screen.ts";
import { SessionView } from "./attach/session-view.ts";
import { credentialsAdvice, loginProblem, noModelAdvice } from "./credentials.ts";
import { exitCodes } from "./exit-codes.ts";
import type { Invocation } from "./invocation.ts";
import type { Output } from "./output.ts";
import { findSession } from "./session-argument.ts";
import { oneLine } from "./text.ts";
import { wholeNumber } from "./values.ts";
import { withClient } from "./with-client.ts";

type Attach = Invocation<"attach">;

/** How a session is shown. */
export interface AttachOptions {
  readonly output: Output;
  readonly env: NodeJS.ProcessEnv;
  readonly signal: AbortSignal;
  /** The user's terminal, see {@link openScreen}. Without one, the session is only shown, as plain lines. */
  readonly screen?: Screen | undefined;
  /** How many messages and tool calls of the past are shown. Default: 20. */
  readonly past?: number;
  readonly ifRunning?: "steer" | "followUp";
  /** Default: true. */
  readonly thinking?: boolean;
  /** Whether the session is removed when the user leaves. */
  readonly isTemporary?: boolean;
}

/** Shows a session live and, on a terminal, takes prompts and answers. */
export async function attach(invocation: Attach): Promise<number> {
  const { options, output, env, signal } = invocation;
  const [word = ""] = invocation.arguments;
  const past = wholeNumber(options.past ?? "20", { option: "past", command: "attach" }, { min: 0, max: 500 });
  const reconnect = { maxDelayMs: 1_000, giveUpAfterMs: Number.POSITIVE_INFINITY };
  if (output.json) {
    return await withClient({ ...invocation, reconnect }, async (client) => {
      const session = await findSession(client, word, signal);
      for await (const { name, params } of session.notifications({ signal })) {
        output.document({ jsonrpc: "2.0", method: name, params });
      }
      return exitCodes.done;
    });
  }
  const isScreen = output.isTerminal && process.stdin.isTTY === true && env["TERM"] !== "dumb";
  const talks = options["view-only"] !== true && isScreen;
  const screen = talks ? await openScreen(env) : undefined;
  const canvas = screen ?? new PlainCanvas(output);
  const note = (text: string): void => canvas.line(` ${oneLine(text)}`, "yellow");
  try {
    return await withClient({ ...invocation, reconnect, note }, async (client) => {
      const session = await findSession(client, word, signal);
      await attachTo(client, session, {
        ...{ output, env, signal, screen, past, ifRunning: options["if-running"] ?? "steer" },
        thinking: options["no-thinking"] !== true,
      });
      return exitCodes.done;
    });
  } finally {
    canvas.endStream();
    if (screen !== undefined) await closeScreen(screen, output);
  }
}

/** Opens the terminal of this process: from now on, what the user types is kept in its editor. */
export async function openScreen(env: NodeJS.ProcessEnv): Promise<Screen> {
  // Loaded late because only a terminal needs it.
  const { Screen } = await import("./attach/screen.ts");
  const screen = new Screen(env);
  screen.onKey = (key) => {
    if (key === "ctrl+c" || key === "ctrl+d") process.kill(process.pid, "SIGINT");
    return key !== "other";
  };
  screen.activity = { what: "connecting to the daemon", since: Date.now() };
  screen.open();
  return screen;
}

/** Restores the terminal, and prints the text that was written and not sent. */
export async function closeScreen(screen: Screen, output: Output): Promise<void> {
  const { unsent } = screen;
  await screen.close();
  if (unsent !== "") output.printText(unsent);
}

/**
 * Shows a session, and on a screen other sessions to which the user switches, until the user leaves, the session is
 * closed, or the signal is aborted.
 */
export async function attachTo(client: Client, session: SessionHandle, options: AttachOptions): Promise<void> {
  for (let next: SessionHandle | undefined = session; next !== undefined; ) {
    const sessionId = await show(client, next, options);
    next = sessionId === undefined ? undefined : client.session(sessionId);
  }
}

/** Shows one session; resolves with the id of the session to show next, if there is one. */
async function show(client: Client, session: SessionHandle, options: AttachOptions): Promise<string | undefined> {
  const { output, env, signal, screen, past: count = 20, thinking = true } = options;
  const { ifRunning = "steer", isTemporary = false } = options;
  const canvas: Canvas = screen ?? new PlainCanvas(output);
  const info = await session.get({ signal });
  canvas.line(head(info), "bold");
  if (info.model === undefined) {
    const advice = await client.info({ signal }).then((daemon) => noModelAdvice(undefined, { info: daemon, env }));
    canvas.line(` ${oneLine(advice)}`, "yellow");
  }
  const past = await recentPast(client, info, count, signal);
  const asks = screen !== undefined;
  const view = new SessionView({ canvas, thinking, asks, self: client.id, usage: past.usage });
  await showPast({ canvas, view, count, past, stored: () => storedMessages(client, session.id, signal) });
  view.begin(info);
  const leaving = new AbortController();
  let next: string | undefined;
  const leave = (sessionId?: string): void => {
    next = sessionId;
    leaving.abort(new Error("left"));
  };
  let refresh = (): void => {};
  if (screen !== undefined) {
    const { beginDialogue } = await import("./attach/dialogue.ts");
    const left = leaving.signal;
    refresh = beginDialogue({ client, session, info, view, screen, env, ifRunning, isTemporary, leave, left });
  }
  const { after, epoch } = past;
  try {
    const stop = AbortSignal.any([signal, leaving.signal]);
    for await (const notification of session.notifications({ after, epoch, signal: stop })) {
      view.show(notification);
      refresh();
      const problem = notification.name === "run/ended" ? loginProblem(notification.params.error ?? "") : undefined;
      if (problem !== undefined) {
        const advice = credentialsAdvice({ info: await client.info({ signal: stop }), env });
        canvas.line(` ${oneLine(`${problem}. ${advice}`)}`, "yellow");
      }
    }
    canvas.line(" the session was closed", "yellow");
  } catch (error) {
    if (!leaving.signal.aborted || signal.aborted) throw error;
  } finally {
    leaving.abort();
  }
  return next;
}

function head({ sessionId, cwd, model, state, name }: SessionInfo): string {
  const modelName = model === undefined ? "no model" : `${model.provider}/${model.id}`;
  const facts = [name, modelName, cwd, state].filter((fact) => fact !== undefined);
  return oneLine(`── ${sessionId} · ${facts.join(" · ")} ──`);
}

interface PastParts {
  readonly canvas: Canvas;
  readonly view: SessionView;
  readonly count: number;
  readonly past: { readonly notifications: readonly LogNotification[]; readonly isCut: boolean };
  /** The messages of the session's file, for a session without a log. */
  readonly stored: () => ReturnType<typeof storedMessages>;
}

async function showPast({ canvas, view, count, past, stored }: PastParts): Promise<void> {
  const { notifications, isCut } = past;
  const messages = count === 0 || notifications.some(hasMessage) ? [] : await stored();
  if ((isCut || messages.length > count) && count > 0) canvas.line(" … earlier: pi-rpcd tail --since 0", "dim");
  for (const message of messages.slice(-count)) view.message(message);
  for (const notification of notifications) view.show(notification);
}

function hasMessage({ name, params }: LogNotification): boolean {
  return name === "session/event" && ["message_end", "rpcd_entry"].includes(params.event.type);
}
