import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect } from "vitest";

const run = promisify(execFile);

export interface TerminalOptions {
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  /** Default: 100. */
  readonly columns?: number;
  /** Default: 30. */
  readonly rows?: number;
}

/** A terminal on its own tmux server, in which one command runs. */
export class Terminal implements AsyncDisposable {
  readonly #directory: string;
  readonly #env: NodeJS.ProcessEnv;

  private constructor(directory: string, env: NodeJS.ProcessEnv) {
    this.#directory = directory;
    this.#env = env;
  }

  static async open(
    command: readonly string[],
    { cwd, env, columns = 100, rows = 30 }: TerminalOptions,
  ): Promise<Terminal> {
    const directory = mkdtempSync(join(tmpdir(), "tmux-"));
    const terminal = new Terminal(directory, { ...env, TERM: "xterm-256color", TMUX: "" });
    // Ctrl-C is for the command; the shell stays to report how it ended.
    const shell = ["sh", "-c", 'trap : INT; "$@"; echo "ended with $?"; exec sleep infinity', "sh"];
    await terminal.#tmux(
      "new-session",
      "-d",
      ...["-x", `${columns}`, "-y", `${rows}`, "-c", cwd],
      ...shell,
      ...command,
    );
    return terminal;
  }

  /** Types text, as it is. */
  async type(text: string): Promise<void> {
    await this.#tmux("send-keys", "-l", text);
  }

  /** Presses keys by tmux's names: `Enter`, `C-c`. */
  async press(...keys: readonly string[]): Promise<void> {
    await this.#tmux("send-keys", ...keys);
  }

  /** Pastes text as a terminal does, in one piece. */
  async paste(text: string): Promise<void> {
    const file = join(this.#directory, "pasted");
    writeFileSync(file, text);
    await this.#tmux("load-buffer", file);
    await this.#tmux("paste-buffer", "-p");
  }

  async resize(columns: number, rows: number): Promise<void> {
    await this.#tmux("resize-window", "-x", `${columns}`, "-y", `${rows}`);
  }

  /** All output from the beginning, without colours. */
  async text(): Promise<string> {
    return await this.#tmux("capture-pane", "-p", "-S", "-2000");
  }

  /** The window's title. */
  async title(): Promise<string> {
    return await this.#tmux("display-message", "-p", "#{pane_title}");
  }

  /** Resolves when the screen shows it. */
  async shows(pattern: RegExp): Promise<void> {
    await expect.poll(() => this.text()).toMatch(pattern);
  }

  /** Resolves with the command's exit code. */
  async exitCode(): Promise<number> {
    await this.shows(/^ended with \d+$/m);
    return Number(/^ended with (\d+)$/m.exec(await this.text())?.[1]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#tmux("kill-server").catch(() => {});
    rmSync(this.#directory, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
  }

  async #tmux(...args: readonly string[]): Promise<string> {
    const { stdout } = await run("tmux", ["-S", join(this.#directory, "socket"), "-f", "/dev/null", "-u", ...args], {
      env: this.#env,
    });
    return stdout;
  }
}
