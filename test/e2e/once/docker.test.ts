import { execFileSync, type SpawnOptions, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { expect, test } from "vitest";
import { type Instruction, instructionsOf, isInContext } from "./dockerfile.ts";

const root = join(import.meta.dirname, "..", "..", "..");
const read = (path: string): string => readFileSync(join(root, path), "utf8");
const dockerfile = instructionsOf(read("docker/Dockerfile"));

/** Commands that cannot be replayed because they change the system. */
const isSystem = ({ text }: Instruction): boolean => /^(apt-get) /.test(text);

/** Absolute paths of the image, mapped into a directory that represents its root. */
function within(image: string, text: string): string {
  return text.replaceAll(/(?<=^|[\s=])\/(?=(?:src|app|state|pi|work|usr\/local\/bin)\b)/g, `${image}/`);
}

/** The environment without npm's variables for scripts such as this test: npm does not start a builder. */
function outsideOfNpm(): NodeJS.ProcessEnv {
  const entries = Object.entries(process.env).filter(([name]) => !/^(npm_|INIT_CWD$|NODE_ENV$)/i.test(name));
  return Object.fromEntries(entries);
}

async function runs(command: string, args: readonly string[], options: SpawnOptions): Promise<string> {
  const child = spawn(command, args, { ...options, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  }
  const [code] = (await once(child, "close")) as [number | null];
  if (code !== 0) throw new Error(`${command} ${args.join(" ")} ended with ${code}: ${output}`);
  return output;
}

/** Replays a Dockerfile's stages in directories; returns the last one's, with the command that starts its daemon. */
class Replay {
  readonly images = new Map<string, string>();
  image = "";
  cwd = "";
  readonly env: Record<string, string> = {};
  user = "root";
  health: readonly string[] = [];
  entrypoint: readonly string[] = [];
  command: readonly string[] = [];
  readonly volumes: string[] = [];
  readonly #root: string;
  readonly #base: NodeJS.ProcessEnv;

  constructor(directory: string, base: NodeJS.ProcessEnv) {
    this.#root = directory;
    this.#base = base;
  }

  async step(instruction: Instruction): Promise<void> {
    const { name, text, words } = instruction;
    switch (name) {
      case "FROM":
        this.image = join(this.#root, `image${this.images.size}`);
        this.images.set(words[2] ?? "", this.image);
        mkdirSync(join(this.image, "usr", "local", "bin"), { recursive: true });
        return;
      case "WORKDIR":
        this.cwd = within(this.image, text);
        mkdirSync(this.cwd, { recursive: true });
        return;
      case "COPY":
        this.#copy(words);
        return;
      case "RUN":
        if (isSystem(instruction)) return;
        await runs("sh", ["-c", owned(within(this.image, text))], { cwd: this.cwd, env: this.#base });
        return;
      case "ENV":
        for (const [, key = "", value = ""] of text.matchAll(/(\w+)=(\S+)/g)) this.env[key] = within(this.image, value);
        return;
      case "USER":
        this.user = text;
        return;
      case "HEALTHCHECK":
        this.health = JSON.parse(text.slice(text.indexOf("CMD ") + 4));
        return;
      case "ENTRYPOINT":
        this.entrypoint = JSON.parse(text);
        return;
      case "CMD":
        this.command = JSON.parse(text);
        return;
      case "VOLUME":
        this.volumes.push(...(JSON.parse(text) as string[]));
        return;
      case "STOPSIGNAL":
        expect(text).toBe("SIGTERM");
        return;
      default:
        throw new Error(`The replay does not know ${name}.`);
    }
  }

  #copy(words: readonly string[]): void {
    const from = words[0]?.startsWith("--from=") ? this.images.get(words[0].slice("--from=".length)) : undefined;
    const [target = "", ...sources] = words.slice(from === undefined ? 0 : 1).toReversed();
    if (from === undefined) {
      expect([sources, target]).toEqual([["."], "."]);
      const ignore = read("docker/Dockerfile.dockerignore");
      const files = execFileSync("git", ["ls-files", "-z"], { cwd: root, encoding: "utf8" }).split("\0");
      for (const file of files.filter((path) => path !== "" && isInContext(path, ignore))) {
        mkdirSync(dirname(join(this.cwd, file)), { recursive: true });
        cpSync(join(root, file), join(this.cwd, file));
      }
      return;
    }
    for (const source of sources) {
      const to = target.endsWith("/") ? join(this.cwd, target, source.split("/").at(-1) ?? "") : join(this.cwd, target);
      cpSync(within(from, source), to, { recursive: true, verbatimSymlinks: true });
    }
  }
}

/** The user `node` exists only in the image. */
function owned(text: string): string {
  return text.replaceAll(" -o node -g node", "");
}

test("the Dockerfile's steps, replayed on a clean tree, build a healthy daemon without tests", {
  timeout: 900_000,
}, async () => {
  const work = mkdtempSync(join(tmpdir(), "img-"));
  try {
    // Nor with the programs of this checkout, pi among them.
    const others = (process.env["PATH"] ?? "")
      .split(delimiter)
      .filter((folder) => !folder.endsWith("node_modules/.bin"));
    const path = [dirname(process.execPath), ...others].join(delimiter);
    const replay = new Replay(work, {
      ...outsideOfNpm(),
      npm_config_prefer_offline: "true",
      npm_config_loglevel: "error",
    });
    expect(dockerfile.filter(isSystem).map(({ text }) => text)).toEqual([
      expect.stringMatching(/install -y --no-install-recommends ca-certificates git ripgrep tini /),
    ]);
    for (const instruction of dockerfile) await replay.step(instruction);
    const { image } = replay;

    const app = join(image, "app");
    expect(readdirSync(app).toSorted()).toEqual(["LICENSE", "dist", "node_modules", "package.json"]);
    const { packages } = JSON.parse(read("package-lock.json")) as { packages: Record<string, { dev?: boolean }> };
    const isThere = (path: string): boolean => existsSync(join(app, path, "package.json"));
    expect(Object.keys(packages).filter((path) => packages[path]?.dev === true && isThere(path))).toEqual([]);
    const { dependencies } = JSON.parse(read("package.json")) as { dependencies: Record<string, string> };
    expect(Object.keys(dependencies).filter((name) => !isThere(`node_modules/${name}`))).toEqual([]);
    const sources = readdirSync(join(app, "dist"), { recursive: true, encoding: "utf8" });
    expect(sources.filter((path) => /(^|\/)test(s)?(\/|$)|\.test\.|(?<!\.d)\.ts$/.test(path))).toEqual([]);
    expect(replay.user).toBe("node");
    expect(replay.volumes).toEqual(["/state", "/pi", "/work"]);
    expect(lstatSync(join(image, "state")).mode & 0o777).toBe(0o700);

    const env = {
      ...outsideOfNpm(),
      ...replay.env,
      PATH: [join(image, "usr", "local", "bin"), path].join(delimiter),
      PI_RPCD_PI: "",
    };
    const [init, separator, ...program] = replay.entrypoint;
    expect([init, separator]).toEqual(["tini", "--"]);
    const [name = "", ...args] = [...program, ...replay.command];
    const daemon = spawn(name, args, { cwd: replay.cwd, env, stdio: ["ignore", "pipe", "inherit"] });
    const exited = once(daemon, "exit");
    try {
      await Promise.race([once(daemon.stdout, "data"), exited]);
      expect(daemon.exitCode).toBe(null);
      expect(await runs(replay.health[0] ?? "", replay.health.slice(1), { cwd: replay.cwd, env })).toContain("bundled");
      expect(readdirSync(join(image, "state"))).toContain("daemon.sock");
    } finally {
      daemon.kill("SIGTERM");
      const [code] = await exited;
      expect(code).toBe(0);
    }
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
});

test("compose builds from the Dockerfile, with a read-only root and a grace that is longer than the daemon's", () => {
  const compose = read("docker/compose.yaml");
  for (const line of [
    "dockerfile: docker/Dockerfile",
    "read_only: true",
    "stop_grace_period: 30s",
    "- no-new-privileges:true",
    "- state:/state",
    "- pi:/pi",
  ]) {
    expect(compose.split("\n").map((text) => text.trim())).toContain(line);
  }
});
