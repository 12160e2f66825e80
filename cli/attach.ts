import type { Client, LogNotification, SessionHandle, SessionInfo } from "../client/index.ts";
import { type Canvas, PlainCanvas } from "./attach/canvas.ts";
import { Conversation } from "./attach/conversation.ts";
import { Keyboard } from "./attach/keyboard.ts";
import type { Key } from "./attach/line-editor.ts";
import { LineEditor } from "./attach/line-editor.ts";
import { LiveCanvas } from "./attach/live-canvas.ts";
import { recentPast, storedMessages } from "./attach/past.ts";
import { SessionView } from "./attach/session-view.ts";
import { exitCodes } from "./exit-codes.ts";
import type { Invocation } from "./invocation.ts";
import { findSession } from "./session-argument.ts";
import { oneLine } from "./text.ts";
import { wholeNumber } from "./values.ts";
import { withClient } from "./with-client.ts";

type Attach = Invocation<"attach">;

/** Shows a session live and, on a terminal, takes prompts and answers. */
export async function attach(invocation: Attach): Promise<number> {
  const { options, output, signal } = invocation;
  const [word = ""] = invocation.arguments;
  const past = wholeNumber(options.past ?? "20", { option: "past", command: "attach" }, { min: 0, max: 500 });
  const reconnect = { maxDelayMs: 1_000, giveUpAfterMs: Number.POSITIVE_INFINITY };
  const terminal = output.json ? undefined : new TerminalSession(invocation);
  const note = terminal === undefined ? {} : { note: (text: string) => terminal.note(text) };
  try {
    return await withClient({ ...invocation, reconnect, ...note }, async (client) => {
      const session = await findSession(client, word, signal);
      if (terminal === undefined) {
        for await (const { name, params } of session.notifications({ signal })) {
          output.document({ jsonrpc: "2.0", method: name, params });
        }
      } else await terminal.run(client, session, past);
      return exitCodes.done;
    });
  } finally {
    terminal?.close();
  }
}

/** The terminal of one user and one session. */
class TerminalSession {
  readonly #invocation: Attach;
  readonly #editor = new LineEditor();
  readonly #live: LiveCanvas | undefined;
  readonly #canvas: Canvas;
  readonly #onResize = (): void => this.#live?.redraw();
  #keyboard: Keyboard | undefined;
  /** Keys that arrived before the conversation began. */
  readonly #early: [text: string | undefined, key: Key][] = [];
  #press = (text: string | undefined, key: Key): void => void this.#early.push([text, key]);

  constructor(invocation: Attach) {
    this.#invocation = invocation;
    const { options, output } = invocation;
    const talks = options["view-only"] !== true && output.isTerminal && process.stdin.isTTY === true;
    this.#live = talks ? new LiveCanvas(output, this.#editor) : undefined;
    this.#canvas = this.#live ?? new PlainCanvas(output);
  }

  note(text: string): void {
    this.#canvas.line(oneLine(` ${text}`), "yellow");
  }

  /** Resolves when the user leaves or the session is closed. */
  async run(client: Client, session: SessionHandle, count: number): Promise<void> {
    const { signal } = this.#invocation;
    const info = await session.get({ signal });
    const view = new SessionView({
      canvas: this.#canvas,
      thinking: this.#invocation.options["no-thinking"] !== true,
      asks: this.#live !== undefined,
      self: client.id,
    });
    // First, so that keys typed while the past is fetched go to the first prompt.
    this.#listen();
    this.#head(info);
    const place = await this.#past(client, view, { sessionId: session.id, count });
    view.begin(info);
    const leaving = new AbortController();
    const conversation = this.#talk(session, view, leaving);
    const stop = AbortSignal.any([signal, leaving.signal]);
    try {
      for await (const notification of session.notifications({ ...place, signal: stop })) {
        view.show(notification);
        conversation?.refresh();
      }
      this.note("the session was closed");
    } catch (error) {
      if (!leaving.signal.aborted || signal.aborted) throw error;
    } finally {
      leaving.abort();
    }
  }

  close(): void {
    process.stdout.off("resize", this.#onResize);
    this.#canvas.endLine();
    this.#live?.close();
    this.#keyboard?.close();
  }

  #listen(): void {
    if (this.#live === undefined) return;
    const { output } = this.#invocation;
    this.#keyboard = new Keyboard({
      source: process.stdin,
      write: (text) => output.write(text),
      onKey: (text, key) => this.#press(text, key),
    });
    process.stdout.on("resize", this.#onResize);
  }

  #talk(session: SessionHandle, view: SessionView, leaving: AbortController): Conversation | undefined {
    const { options } = this.#invocation;
    if (this.#live === undefined) return undefined;
    const ifRunning = options["if-running"] ?? "steer";
    const parts = { session, view, canvas: this.#live, editor: this.#editor, ifRunning };
    const conversation = new Conversation(parts);
    this.#press = (text, key) => conversation.press(text, key);
    for (const [text, key] of this.#early.splice(0)) conversation.press(text, key);
    void conversation.left.then(() => leaving.abort(new Error("left")));
    const responder = session.onDialog((dialog, { signal }) => conversation.ask(dialog, signal), {
      signal: leaving.signal,
    });
    responder.ready.catch(() => {});
    conversation.refresh();
    return conversation;
  }

  #head({ sessionId, cwd, model, state, name }: SessionInfo): void {
    const modelName = model === undefined ? "no model" : `${model.provider}/${model.id}`;
    const facts = [name, modelName, cwd, state].filter((fact) => fact !== undefined);
    this.#canvas.line(oneLine(`── ${sessionId} · ${facts.join(" · ")} ──`), "bold");
    if (this.#live === undefined) return;
    this.#canvas.line(" Enter sends; Ctrl-C aborts the run, a second Ctrl-C leaves; Ctrl-D leaves", "dim");
  }

  /** Shows the recent past and returns the place where the live stream continues. */
  async #past(
    client: Client,
    view: SessionView,
    { sessionId, count }: { readonly sessionId: string; readonly count: number },
  ): Promise<{ after: number; epoch: string }> {
    const { signal } = this.#invocation;
    const { notifications, isCut, after, epoch } = await recentPast(client, sessionId, count, signal);
    const stored = count === 0 || hasMessage(notifications) ? [] : await storedMessages(client, sessionId, signal);
    const isShort = isCut || stored.length > count;
    if (isShort && count > 0) this.#canvas.line(" … earlier: pi-rpcd tail --since 0", "dim");
    for (const message of stored.slice(-count)) view.message(message);
    for (const notification of notifications) view.show(notification);
    return { after, epoch };
  }
}

function hasMessage(notifications: readonly LogNotification[]): boolean {
  return notifications.some(
    ({ name, params }) => name === "session/event" && ["message_end", "rpcd_entry"].includes(params.event.type),
  );
}
