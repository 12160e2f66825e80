import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { piUnderTest } from "../helpers/pi-versions.ts";
import { main } from "../helpers/programs.ts";
import { Terminal } from "./terminal.ts";

const root = join(import.meta.dirname, "..", "..");

/** A user's machine: a home directory with settings of pi and of the daemon, and a directory for temporary files. */
class Machine implements Disposable {
  readonly root = realpathSync(mkdtempSync(join(tmpdir(), "machine-")));
  readonly #home = join(this.root, "home");
  readonly #temporary = join(this.root, "tmp");

  constructor() {
    for (const directory of [this.#home, this.#temporary]) mkdirSync(directory);
    this.#write(".pi/agent/auth.json", JSON.stringify({ anthropic: { type: "api_key", key: "sk-of-the-user" } }));
    this.#write(".pi/agent/extensions/used.ts", `throw new Error("an extension of the user was loaded");`);
    this.#write(".config/pi-rpcd/config.json", "this is not valid");
  }

  /** A terminal in which `pi-rpcd try` runs. */
  tryOut(program: readonly string[] = [process.execPath, main, "try"]): Promise<Terminal> {
    const { PI_RPCD_STATE_DIR: _, XDG_CONFIG_HOME: __, XDG_STATE_HOME: ___, ...inherited } = process.env;
    const env = {
      ...inherited,
      HOME: this.#home,
      // What pi compiles is kept there.
      XDG_CACHE_HOME: join(this.root, "cache"),
      npm_config_cache: join(this.root, "npm"),
      PI_RPCD_PI: piUnderTest().cli,
      // Neither is used.
      ANTHROPIC_API_KEY: "sk-of-the-user",
      PI_RPCD_PORT: "1",
    };
    // Only the command and the processes that it starts have this variable.
    const command = ["env", `TMPDIR=${this.#temporary}`, ...program];
    return Terminal.open(command, { cwd: root, env });
  }

  /** Every file and directory in the home directory. */
  homeFiles(): readonly string[] {
    return readdirSync(this.#home, { recursive: true, encoding: "utf8" }).toSorted();
  }

  /** The ids and commands of the processes that run for `try`, itself included. */
  processes(): readonly { readonly pid: number; readonly command: string }[] {
    const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
    return pids.flatMap((pid) => {
      try {
        // pi overwrites its environment with its title.
        const isOurs =
          readFileSync(`/proc/${pid}/environ`, "utf8").includes(`TMPDIR=${this.#temporary}\0`) ||
          readlinkSync(`/proc/${pid}/cwd`).startsWith(this.#temporary);
        const command = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim();
        return isOurs ? [{ pid: Number(pid), command }] : [];
      } catch {
        return [];
      }
    });
  }

  /** The processes and files that `try` has. */
  present(): readonly string[] {
    return [...this.processes().map(({ command }) => command), ...readdirSync(this.#temporary)];
  }

  [Symbol.dispose](): void {
    for (const { pid } of this.processes()) process.kill(pid, "SIGKILL");
    rmSync(this.root, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
  }

  #write(path: string, text: string): void {
    mkdirSync(join(this.#home, path, ".."), { recursive: true });
    writeFileSync(join(this.#home, path), text);
  }
}

/** Types the first prompt, and resolves when the tool runs. */
async function beginTour(terminal: Terminal): Promise<void> {
  await terminal.shows(/for example "Is the build green\?"[\s\S]* · [0-9a-f]{8} · \S+project$/m);
  await terminal.type("Hello there");
  await terminal.press("Enter");
  await terminal.shows(/You wrote: “Hello there”[\s\S]*word by word\.[\s\S]*\[bash\] sleep 2/);
}

test("try shows a streamed answer, a tool, a push with its receipt and a question, and leaves nothing", async () => {
  using machine = new Machine();
  const before = machine.homeFiles();
  // As README.md says.
  await using terminal = await machine.tryOut(["npm", "run", "--silent", "try"]);
  await beginTour(terminal);
  // The command, the process with the scripted model, the daemon, pi; and a directory.
  expect(machine.processes().length).toBeGreaterThanOrEqual(4);
  expect(machine.present()).toEqual(expect.arrayContaining([expect.stringMatching(/^pi-rpcd-try-/)]));
  await terminal.shows(/script\] [\s\S]*delivered[\s\S]*“Build 318-[0-9a-f]{6} is green\.” Its\s/);
  await terminal.shows(/What do you want to know\?[\s\S]*1[\s\S]*What does the receipt promise\?[\s\S]*Who else/);
  await terminal.press("Down", "Enter");
  await terminal.shows(/You chose Who else sees this session\?/);
  await terminal.shows(/Every client that is attached[\s\S]*pi-rpcd new[\s\S]*Ctrl-D leaves/);
  await terminal.shows(/settled after/);
  await terminal.type("What is 2 and 2?");
  await terminal.press("Enter");
  await terminal.shows(/You wrote: “What is 2 and 2\?”[\s\S]*cannot answer that[\s\S]*settled after/);
  await terminal.press("C-d");
  expect(await terminal.exitCode()).toBe(0);
  expect(machine.present()).toEqual([]);
  expect(machine.homeFiles()).toEqual(before);
  expect(await terminal.text()).toMatch(/All processes have ended[\s\S]*\/login[\s\S]*pi-rpcd new/);
});

const endings: readonly (readonly [string, (terminal: Terminal, pid: number) => unknown])[] = [
  ["its terminal is closed", (terminal) => terminal[Symbol.asyncDispose]()],
  ["it gets SIGTERM", (_, pid) => process.kill(pid, "SIGTERM")],
  ["it is killed", (_, pid) => process.kill(pid, "SIGKILL")],
];

test.each(endings)("no process and no file is left if %s during the tour", async (_, end) => {
  using machine = new Machine();
  await using terminal = await machine.tryOut();
  await beginTour(terminal);
  const own = machine.processes().find(({ command }) => command.endsWith(`${main} try`));
  if (own === undefined) throw new Error("The process of try was not found.");
  await end(terminal, own.pid);
  await expect.poll(() => machine.present()).toEqual([]);
});
