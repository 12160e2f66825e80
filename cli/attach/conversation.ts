import { v7 as uuidv7 } from "uuid";
import type { SessionHandle } from "../../client/index.ts";
import { loginProblem } from "../credentials.ts";
import { CommandError, reportOf } from "../errors.ts";
import { mebibytes } from "../format.ts";
import { oneLine, shorten } from "../text.ts";
import { Choice } from "./choice.ts";
import type { LocalCommands } from "./local-commands.ts";
import { PromptEditor } from "./prompt-editor.ts";
import type { Questions } from "./questions.ts";
import type { Activity, KeyHandler, Screen } from "./screen.ts";
import type { SessionView } from "./session-view.ts";

export interface ConversationOptions {
  readonly session: Pick<SessionHandle, "prompt" | "abort" | "bash" | "command">;
  readonly view: Pick<SessionView, "isRunning" | "isCompacting">;
  readonly screen: Screen;
  readonly questions: Questions;
  readonly commands: LocalCommands;
  readonly ifRunning: "steer" | "followUp";
  /** Whether the session is removed when the user leaves. */
  readonly isTemporary?: boolean;
  /** Called when the activity of this user has changed. */
  readonly onActivity?: () => void;
}

type When = "steer" | "followUp";

/** How long a second Ctrl-C leaves. */
const leaveMs = 2_000;
/** The daemon closes a connection that sends a message of 16 MiB. */
const maxTextBytes = 15 * 1_048_576;

/** Handles what a user types: prompts, commands, shell commands, and the keys that abort and leave. */
export class Conversation {
  readonly #options: ConversationOptions;
  readonly #left = Promise.withResolvers<void>();
  /** The shell commands of this user that run, by their ids. */
  readonly #bash = new Map<string, Activity>();
  #isConnected = true;
  /** Runs while the next Ctrl-C leaves. */
  #leaveTimer: NodeJS.Timeout | undefined;

  constructor(options: ConversationOptions) {
    this.#options = options;
    options.screen.editor.onText = (text) => this.#submit(text, options.ifRunning);
  }

  /** Resolves when the user wants to leave. */
  get left(): Promise<void> {
    return this.#left.promise;
  }

  set isConnected(isConnected: boolean) {
    this.#isConnected = isConnected;
  }

  /** The shell command of this user that Esc ends. */
  get activity(): Activity | undefined {
    return this.#bash.values().next().value;
  }

  readonly onKey: KeyHandler = (key) => {
    const { screen } = this.#options;
    const wasArmed = this.#leaveTimer !== undefined;
    this.#disarm();
    switch (key) {
      case "ctrl+c":
        this.#interrupt(wasArmed);
        return true;
      case "ctrl+d":
        // Within a text, it deletes a character.
        if (screen.input instanceof PromptEditor && screen.input.getText() !== "") return false;
        this.#left.resolve();
        return true;
      case "escape":
        return this.#escape();
      case "alt+enter":
        if (screen.input === screen.editor) this.#submit(screen.editor.take(), "followUp");
        return true;
      case "other":
        return false;
    }
  };

  #disarm(): void {
    clearTimeout(this.#leaveTimer);
    this.#leaveTimer = undefined;
    this.#options.screen.notice("keys", undefined);
  }

  /** Ctrl-C clears what was typed, and a second one within two seconds leaves. */
  #interrupt(wasArmed: boolean): void {
    const { screen, view } = this.#options;
    if (wasArmed) {
      this.#left.resolve();
      return;
    }
    this.#leaveTimer = setTimeout(() => this.#disarm(), leaveMs).unref();
    const typed = screen.input instanceof PromptEditor ? screen.input.take() : "";
    screen.editor.addToHistory(typed);
    const run = view.isRunning ? "Esc aborts the run; " : "";
    const effect = this.#options.isTemporary === true ? "the session is removed" : "the session continues";
    screen.notice("keys", `${run}Ctrl-C again leaves, and ${effect}`);
  }

  #escape(): boolean {
    const { screen, session, view, questions } = this.#options;
    if (screen.input instanceof Choice || screen.editor.isShowingAutocomplete()) return false;
    if (questions.isAsking) questions.dismiss();
    else if (this.#bash.size > 0) {
      screen.line(" ending the shell command", "yellow");
      session.command({ type: "abort_bash" }).catch((error: unknown) => this.#fail(error));
    } else if (view.isRunning || view.isCompacting) {
      screen.line(view.isCompacting ? " ending the compaction" : " aborting the run", "yellow");
      session.abort().catch((error: unknown) => this.#fail(error));
    }
    return true;
  }

  #submit(text: string, when: When): void {
    const { screen, commands } = this.#options;
    if (text.trim() === "") return;
    const problem = this.#problemOf(text);
    if (problem !== undefined) {
      this.#keep(text, problem);
      return;
    }
    if (text.startsWith("!")) {
      screen.editor.addToHistory(text);
      void this.#shell(text);
      return;
    }
    // Text that begins with a space is never a command.
    void commands
      .run(text)
      .then((done) => {
        if (done.kind === "refused") this.#keep(text, done.why);
        else screen.editor.addToHistory(text);
        if (done.kind === "prompt") this.#prompt(text, when);
      })
      .catch((error: unknown) => this.#keepAfter(error, text));
  }

  #problemOf(text: string): string | undefined {
    if (!this.#isConnected) return "Not sent: no daemon answers. Start it in another terminal: pi-rpcd start";
    const bytes = Buffer.byteLength(JSON.stringify(text));
    if (bytes <= maxTextBytes) return undefined;
    return `Not sent: the text has ${mebibytes(bytes)}, and the limit is ${mebibytes(maxTextBytes)}. Write it to a file, and name the file.`;
  }

  #prompt(text: string, when: When): void {
    const { session } = this.#options;
    session.prompt(text, { ifRunning: when }).catch((error: unknown) => this.#keepAfter(error, text));
  }

  /** `!command` adds the output to the context, `!!command` does not, as in pi. */
  async #shell(text: string): Promise<void> {
    const { session, screen } = this.#options;
    const isExcluded = text.startsWith("!!");
    const command = text.slice(isExcluded ? 2 : 1).trim();
    if (command === "") return;
    const bashId = uuidv7();
    const id = `bash:${bashId}`;
    const name = isExcluded ? "bash, not in the context" : "bash";
    screen.toolStarted({ id, name, args: { command } });
    const startedAt = Date.now();
    this.#bash.set(bashId, { what: `${shorten(oneLine(command), 40)} runs`, since: startedAt });
    this.#options.onActivity?.();
    const end = (output: string, isError: boolean): void =>
      screen.toolEnded({ id, name, text: output, images: [], isError, tookMs: Date.now() - startedAt });
    try {
      const { output, exitCode, cancelled } = await session.bash(command, { bashId, excludeFromContext: isExcluded });
      const failed = exitCode === undefined || exitCode === 0 ? "" : `\n(exit code ${exitCode})`;
      end(`${output}${cancelled ? "\n(ended by a user)" : failed}`, cancelled || failed !== "");
    } catch (error) {
      const { name: kind, message } = reportOf(error);
      end(`${message} (${kind})`, true);
    } finally {
      this.#bash.delete(bashId);
      this.#options.onActivity?.();
    }
  }

  /** Says why a text was not sent, and returns it to the editor. */
  #keep(text: string, why: string): void {
    const { screen } = this.#options;
    screen.line(` ${why}`, "yellow");
    screen.editor.addToHistory(text);
    if (screen.editor.getText() === "") screen.editor.setText(text);
    else screen.line(" Your text is in the history: press Up to get it back.", "dim");
    screen.tui.requestRender();
  }

  #keepAfter(error: unknown, text: string): void {
    const why = failure(error, text);
    this.#keep(text, why);
    const { screen, commands } = this.#options;
    const problem = loginProblem(error instanceof Error ? error.message : why);
    if (problem === undefined) return;
    void commands.credentialsAdvice().then(
      (advice) => screen.line(` ${oneLine(`${problem}. ${advice}`)}`, "yellow"),
      () => {},
    );
  }

  #fail(error: unknown): void {
    this.#options.screen.line(failure(error), "red");
  }
}

/** The commands of the command line whose words describe the errors of these commands. */
const wordsOf: Readonly<Record<string, string>> = { name: "rename", push: "push", compact: "compact", model: "model" };

function failure(error: unknown, text = ""): string {
  const [, word = ""] = /^\/(\w+)/.exec(text) ?? [];
  const { name, message } = reportOf(error, wordsOf[word] ?? "attach");
  const lines = error instanceof CommandError ? error.lines.map((line) => `\n   ${line}`) : [];
  return `✘ ${message} (${name})${lines.join("")}`;
}
