import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type FramingName, framings } from "../../../cli/connect/framing.ts";
import { startEdge, type TestEdge, token } from "../../helpers/edge.ts";
import { type Example, expectAnswer, further, specification } from "../../helpers/json-rpc-examples.ts";
import { main } from "../../helpers/programs.ts";

/** `pi-rpcd connect` as an editor starts it, connected to an edge. */
class Bridge {
  readonly #child: ChildProcess;
  readonly #framing: FramingName;
  readonly #heard: unknown[] = [];
  #waiting: () => void = () => {};

  constructor(edge: TestEdge, framing: FramingName) {
    this.#framing = framing;
    const { socketPath, port } = edge;
    const file = { pid: process.pid, version: "0", protocol: 1, url: `http://127.0.0.1:${port}`, socketPath, token };
    writeFileSync(join(edge.directory, "daemon.json"), JSON.stringify(file), { mode: 0o600 });
    const args = ["connect", "--no-start", "--state-dir", edge.directory, "--framing", framing];
    this.#child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", main, ...args], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    const onMessage = (message: Buffer): void => {
      this.#heard.push(JSON.parse(message.toString()));
      this.#waiting();
    };
    const onOversize = (): never => expect.unreachable("no answer is that long");
    const reader = framings[framing].reader({ onMessage, onOversize }, 1024 * 1024);
    this.#child.stdout?.on("data", (chunk: Buffer) => reader.push(chunk));
  }

  say(text: string): void {
    const { head, tail } = framings[this.#framing].around(Buffer.from(text));
    this.#child.stdin?.write(`${head}${text}${tail}`);
  }

  async next(): Promise<unknown> {
    while (this.#heard.length === 0) await new Promise<void>((resolve) => (this.#waiting = resolve));
    return this.#heard.shift();
  }

  /** Ends the input; resolves with the exit code and the remaining output. */
  async end(): Promise<readonly [code: number | null, heard: readonly unknown[]]> {
    const closed = once(this.#child, "close");
    this.#child.stdin?.end();
    const [code] = await closed;
    return [code, this.#heard];
  }

  async kill(): Promise<void> {
    if (this.#child.exitCode !== null) return;
    const exited = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await exited;
  }
}

const examples = [...specification, ...further];
const isOneLine = ({ text }: Example): boolean => text !== "" && !text.includes("\n");

describe.each<FramingName>(["jsonl", "content-length"])("JSON-RPC 2.0 over stdio in the framing %s", (framing) => {
  let edge: TestEdge;
  let bridge: Bridge;
  beforeAll(async () => {
    edge = await startEdge();
    bridge = new Bridge(edge, framing);
  });
  afterAll(async () => {
    await bridge.kill();
    await edge[Symbol.asyncDispose]();
  });

  // The examples run in sequence over one bridge, which must stay usable after each.
  test.each(examples.filter((example) => framing !== "jsonl" || isOneLine(example)))(
    "answers to the letter: $title",
    async (example) => {
      bridge.say(example.text);
      const heard: unknown[] = [];
      // An answer that does not come before the second call's never comes.
      for (const mark of ["first mark", "second mark"]) {
        bridge.say(JSON.stringify({ jsonrpc: "2.0", id: mark, method: "daemon/info" }));
        for (let message = await bridge.next(); !isOf(mark, message); message = await bridge.next())
          heard.push(message);
      }
      expect(heard.length).toBeLessThan(2);
      expectAnswer(heard[0], example);
    },
  );

  test("ends when every request has its answer, and waits for nothing else", async () => {
    for (const { text } of examples.filter(isOneLine)) bridge.say(text);
    const [code, heard] = await bridge.end();
    expect(code).toBe(0);
    expect(heard).toHaveLength(examples.filter((example) => isOneLine(example) && example.answer !== undefined).length);
  });
});

function isOf(mark: string, message: unknown): boolean {
  return (message as { readonly id?: unknown }).id === mark;
}
