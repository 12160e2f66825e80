import { spawn } from "node:child_process";
import { once } from "node:events";
import { accessSync, constants, mkdirSync } from "node:fs";
import { createServer } from "node:net";
import { delimiter, join } from "node:path";
import { WebSocket } from "ws";
import type { RecordSource } from "./drain.ts";
import { echoPi } from "./echo-sources.ts";
import type { Resources } from "./figure.ts";
import { run } from "./run.ts";

/** A program that connects one program's stdio to a WebSocket: the alternative to a daemon. */
export interface Rival {
  readonly name: string;
  /** Its command without the port's arguments. Rejects with the reason if it is unavailable. */
  readonly install: (directory: string) => Promise<readonly string[]>;
  readonly args: (port: number) => readonly string[];
  readonly path: string;
}

const child = [process.execPath, echoPi] as const;
const t = 0x74;

export const rivals: readonly Rival[] = [
  {
    name: "websocketd",
    install: () => Promise.resolve([onPath("websocketd")]),
    args: (port) => [`--port=${port}`, "--address=127.0.0.1", "--loglevel=fatal", ...child],
    path: "/",
  },
  {
    name: "supergateway",
    install: (directory) => fromNpm("supergateway", "4.0.0", join("dist", "index.js"), directory),
    args: (port) => [
      ...["--stdio", child.map((part) => `"${part}"`).join(" "), "--outputTransport", "ws"],
      ...["--port", String(port), "--logLevel", "none"],
    ],
    path: "/message",
  },
  {
    name: "stdio-to-ws",
    install: (directory) => fromNpm("stdio-to-ws", "0.2.0", join("dist", "main.js"), directory),
    args: (port) => ["--quiet", "--port", String(port), child.map((part) => `"${part}"`).join(" ")],
    path: "/",
  },
];

function onPath(name: string): string {
  for (const folder of (process.env["PATH"] ?? "").split(delimiter)) {
    const file = join(folder, name);
    try {
      accessSync(file, constants.X_OK);
      return file;
    } catch {}
  }
  throw new Error(`${name} is not on PATH; Debian has a package of that name`);
}

/** Into the figure's own directory, without install scripts. */
async function fromNpm(name: string, version: string, program: string, directory: string): Promise<readonly string[]> {
  const prefix = join(directory, name);
  mkdirSync(prefix, { recursive: true });
  const flags = ["--prefix", prefix, "--ignore-scripts", "--no-save", "--no-audit", "--no-fund", "--loglevel=silent"];
  const { code } = await run("npm", ["install", ...flags, `${name}@${version}`], { stdout: "ignore" });
  if (code !== 0) throw new Error(`npm could not install ${name}@${version}`);
  return [process.execPath, join(prefix, "node_modules", name, program)];
}

/** A running rival. */
export interface RunningRival {
  readonly source: RecordSource;
  readonly pid: number;
}

/** Starts it with the daemon's child, and connects one client. Rejects if it does not listen in time. */
export async function startRival(
  { args, path, name }: Rival,
  command: readonly string[],
  resources: Resources,
): Promise<RunningRival> {
  const port = await freePort();
  const [file = "", ...given] = command;
  const bridge = spawn(file, [...given, ...args(port)], { stdio: "ignore" });
  const gone = new Promise<void>((resolve) => bridge.once("error", () => resolve()).once("exit", () => resolve()));
  resources.add(bridge, async (started) => {
    started.kill();
    await gone;
  });
  const socket = await connected(`ws://127.0.0.1:${port}${path}`, name);
  resources.add(socket, (open) => open.terminate());
  let onRecord: () => void = () => {};
  // Each message is a line of the child; answers begin with their id, records with their type.
  socket.on("message", (line: Buffer) => {
    if (line[2] === t) onRecord();
  });
  let lastId = 0;
  const source: RecordSource = {
    emit: async (records, { start, end }) => {
      lastId += 1;
      socket.send(JSON.stringify({ id: lastId, type: "emit", file: records, start, end }));
    },
    listen: (tell) => {
      onRecord = tell;
    },
  };
  return { source, pid: bridge.pid ?? 0 };
}

const startDeadlineMs = 30_000;

async function connected(url: string, name: string): Promise<WebSocket> {
  const until = performance.now() + startDeadlineMs;
  for (;;) {
    const socket = new WebSocket(url, { perMessageDeflate: false });
    const isOpen = await new Promise<boolean>((resolve) => {
      socket.once("open", () => resolve(true)).once("error", () => resolve(false));
    });
    if (isOpen) return socket;
    if (performance.now() > until) throw new Error(`${name} did not listen within ${startDeadlineMs / 1_000} s`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { readonly port: number };
  server.close();
  await once(server, "close");
  return port;
}
