import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect } from "vitest";

const run = promisify(execFile);

/** A terminal of 100 columns and 30 rows on its own tmux server, in which one command runs. */
export class Terminal implements AsyncDisposable {
  readonly #directory: string;
  readonly #env: NodeJS.ProcessEnv;

  private constructor(directory: string, env: NodeJS.ProcessEnv) {
    this.#directory = directory;
    this.#env = env;
  }

  static async open(
    command: readonly string[],
    { cwd, env }: { cwd: string; env: NodeJS.ProcessEnv },
  ): Promise<Terminal> {
    const directory = mkdtempSync(join(tmpdir(), "tmux-"));
    const terminal = new Terminal(directory, { ...env, TERM: "xterm-256color", TMUX: "" });
    // Ctrl-C is for the command; the shell stays to report how it ended.
    const shell = ["sh", "-c", 'trap : INT; "$@"; echo "ended with $?"; exec sleep infinity', "sh"];
    await terminal.#tmux("new-session", "-d", ...["-x", "100", "-y", "30", "-c", cwd], ...shell, ...command);
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

  /** All output from the beginning, without colours. */
  async text(): Promise<string> {
    return await this.#tmux("capture-pane", "-p", "-S", "-2000");
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
