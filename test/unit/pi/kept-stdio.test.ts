import { chmodSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { signal } from "../../../server/pi/processes.ts";
import { type Kept, keep, RawConnection } from "../../helpers/kept.ts";
import { patience } from "../../helpers/patience.ts";

const keeper = join(import.meta.dirname, "..", "..", "..", "extension", "keeper.ts");

/** Writes each line back, and ends with its input. */
const echo = `
  let text = "";
  process.stdin.on("data", (chunk) => {
    text += chunk;
    const end = text.lastIndexOf("\\n") + 1;
    if (end > 0) process.stdout.write(text.slice(0, end));
    text = text.slice(end);
  });
  process.stdin.on("end", () => process.exit(3));
`;

/** Waits for each of its writes, as pi does. */
const write = `const write = (text) => new Promise((resolve) => process.stdout.write(text, resolve));`;

async function raw(kept: Kept, from = 0): Promise<RawConnection> {
  const connection = new RawConnection(kept);
  await connection.from(from);
  return connection;
}

describe("output", () => {
  const lines = Array.from({ length: 30_000 }, (_, i) => `line ${i}\n`).join("");
  const source = `for (let i = 0; i < 30_000; i += 1) process.stdout.write("line " + i + "\\n"); ${echo}`;

  test("comes from any offset that was not acknowledged, while the process lives and after its end", async () => {
    await using kept = await keep({ source });
    const first = await raw(kept);
    expect(await first.output(lines.length)).toBe(lines);
    await first.close();
    const offsets = [0, 1, 65_535, 65_536, 65_537, 200_000, lines.length, lines.length + 1, -5];
    for (const from of offsets) {
      const connection = new RawConnection(kept);
      expect(await connection.from(from)).toMatchObject({ base: 0, head: lines.length, everSent: lines.length });
      const left = lines.slice(Math.max(from, 0));
      expect(await connection.output(left.length)).toBe(left);
      await connection.close();
    }
    const last = await raw(kept, 70_000);
    await last.write("\u0001ack 140000\n\u0001end\n");
    expect(await kept.ended).toEqual({ code: 3, signal: null });
    expect(kept.rest()).toMatchObject({ code: 3, base: 140_000, head: lines.length, text: lines.slice(140_000) });
    for (const from of [0, 140_000, 200_000, lines.length]) {
      const { stdio, keeper, said } = await kept.takeOver(from);
      expect(keeper.from).toBe(Math.max(from, 140_000));
      expect(await stdio.exited).toEqual({ code: 3, signal: null });
      expect(said.text).toBe(lines.slice(keeper.from));
    }
  });

  test("waits in the program beyond the bound, and continues after acknowledgements", async () => {
    const source = `${write}
      for (let i = 0; i < 64; i += 1) { await write("x".repeat(9_999) + "\\n"); console.error("wrote", i); }
      ${echo}`;
    await using kept = await keep({ source, limits: { maxHeldBytes: 200_000 } });
    const wrote = () => kept.stderr.split("\n").length - 1;
    await vi.waitFor(() => expect(wrote()).toBe(20), patience);
    const { keeper, said } = await kept.takeOver(0);
    expect(keeper.answer).toMatchObject({ base: 0, head: 210_000, everSent: 0 });
    await said.until(() => said.bytes === 210_000);
    keeper.ack(65_536);
    await said.until(() => said.bytes === 270_000);
    expect(wrote()).toBe(26);
    keeper.ack(270_000);
    await said.until(() => said.bytes === 480_000);
    keeper.ack(480_000);
    await said.until(() => said.bytes === 640_000);
    await vi.waitFor(() => expect(wrote()).toBe(64), patience);
    expect(new Set(said.text.split("\n"))).toEqual(new Set(["x".repeat(9_999), ""]));
  });

  test("is whole in the memory of output that was acknowledged", async () => {
    const source = `${write}
      for (let i = 0; i < 200; i += 1) await write(String(i).repeat(7_999).slice(0, 7_999) + "\\n");
      ${echo}`;
    const whole = Array.from({ length: 200 }, (_, i) => `${String(i).repeat(7_999).slice(0, 7_999)}\n`).join("");
    await using kept = await keep({ source, limits: { maxHeldBytes: 400_000 } });
    const first = await raw(kept);
    // What follows the first acknowledgements is written into what they have released.
    for (const acked of [200_000, 400_000, 600_000, 800_000, 1_000_000, 1_200_000]) {
      await first.output(acked + 200_000);
      await first.write(`\u0001ack ${acked}\n`);
    }
    expect((await first.output(whole.length)) === whole).toBe(true);
    await first.close();
    // The rest is read again, from the keeper's memory.
    const last = await raw(kept, 1_200_000);
    expect((await last.output(whole.length - 1_200_000)) === whole.slice(1_200_000)).toBe(true);
    await last.close();
  });

  test("comes to the end of a record that is written in pieces beyond the bound, though none is acknowledged", async () => {
    const source = `${write}
      for (let i = 0; i < 64; i += 1) await write("x".repeat(9_999));
      await write("\\n");
      for (let i = 0; i < 64; i += 1) { await write("y".repeat(9_999) + "\\n"); console.error("wrote", i); }`;
    await using kept = await keep({ source, limits: { maxHeldBytes: 200_000 } });
    const { keeper, said } = await kept.takeOver(0);
    const record = 64 * 9_999 + 1;
    await said.until(() => said.bytes === record);
    expect(kept.stderr).toBe("");
    keeper.ack(record);
    await said.until(() => said.bytes === record + 210_000);
  });

  test("never blocks a program whose input has ended", async () => {
    const source = `${write}
      process.stdin.resume().on("end", async () => {
        for (let i = 0; i < 1_200; i += 1) await write("y".repeat(999) + "\\n");
        process.exit(5);
      });
      for (let i = 0; i < 30; i += 1) await write("x".repeat(9_999) + "\\n");`;
    await using kept = await keep({ source, limits: { maxHeldBytes: 200_000 } });
    const first = await raw(kept);
    expect(await first.output(210_000)).toMatch(/^[x\n]{210000}$/);
    await first.write("\u0001end\n");
    await first.close();
    expect(await kept.ended).toEqual({ code: 5, signal: null });
    const { stdio, said } = await kept.takeOver(210_000);
    expect(await stdio.exited).toEqual({ code: 5, signal: null });
    expect([said.text.match(/x/g)?.length, said.text.match(/y/g)?.length]).toEqual([9 * 9_999, 1_200 * 999]);
  });

  test("of a program that ends while its daemon reads slowly is complete", async () => {
    const source = `process.stdin.resume().on("end", () => {
      for (let i = 0; i < 1_200; i += 1) process.stdout.write("y".repeat(999) + "\\n");
      process.on("exit", () => process.stdout.write("last"));
      process.exit(0);
    });`;
    await using kept = await keep({ source });
    const { stdio, said } = await kept.takeOver(0);
    stdio.stdout.pause();
    stdio.stdin.end();
    await kept.ended;
    stdio.stdout.resume();
    expect(await stdio.exited).toEqual({ code: 0, signal: null });
    expect([said.bytes, said.text.slice(-6)]).toEqual([1_200_004, "y\nlast"]);
  });

  test("leaves out repeated results of a tool while nobody reads and half of the room is used", async () => {
    const source = `${write}
      const update = (i) => write(JSON.stringify({ type: "tool_execution_update", i, text: "z".repeat(9_900) }) + "\\n");
      for (let i = 0; i < 100; i += 1) await update(i);
      await write('{"type":"tool_execution_end"}\\n');
      process.stdin.once("data", () => update(100));`;
    await using kept = await keep({ source, limits: { maxHeldBytes: 200_000 } });
    const { stdio, said } = await kept.takeOver(0);
    await said.until(() => said.text.includes("_end"));
    const records = () =>
      said.text
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line));
    expect(records()).toHaveLength(12);
    expect(
      records()
        .slice(0, 11)
        .map(({ i }) => i),
    ).toEqual(Array.from({ length: 11 }, (_, i) => i));
    stdio.stdin.write("{}\n");
    await said.until(() => said.text.includes('"i":100'));
  });
});

describe("input", () => {
  test("arrives in whole lines, however it is split", async () => {
    await using kept = await keep({ source: echo });
    const connection = await raw(kept);
    const lines = '{"a":1}\n\u2028 \u{1f600}\r\n\n{"b":"\u0001"}\n';
    for (const byte of Buffer.from(`${lines}\u0001forget x\n`)) await connection.write(Buffer.of(byte));
    expect(await connection.output(Buffer.byteLength(lines) - 5)).toBe(lines);
  });

  test("loses the beginning of a line with its connection", async () => {
    await using kept = await keep({ source: echo });
    const first = await raw(kept);
    await first.write('{"whole":1}\n{"half":');
    await first.output(12);
    await first.close();
    const { stdio, keeper, said } = await kept.takeOver(0);
    expect(keeper.answer.taken).toBe(1);
    stdio.stdin.write('{"next":2}\n');
    await said.until(() => said.text.includes("next"));
    expect(said.text).toBe('{"whole":1}\n{"next":2}\n');
  });

  test("of a former connection never arrives after the answer to the next one", async () => {
    const source = `
      process.stdin.on("data", (chunk) => process.stdout.write(chunk)).pause();
      process.on("SIGUSR2", () => process.stdin.resume());
      console.error("ready");`;
    await using kept = await keep({ source });
    const first = await raw(kept);
    const line = (i: number) => `{"i":${i},"text":"${"x".repeat(10_000)}"}\n`;
    // More than the program's stream and the sockets hold.
    const lines = 200;
    let unread = false;
    for (let i = 0; i < lines; i += 1) unread = !first.socket.write(line(i));
    expect(unread).toBe(true);
    const count = async () => {
      const answer = await new RawConnection(kept).from(0);
      return answer.taken;
    };
    await vi.waitFor(async () => expect(await count()).toBeGreaterThan(0), patience);
    const { stdio, keeper, said } = await kept.takeOver(0);
    expect(keeper.answer.taken).toBeLessThan(lines);
    signal(kept.identity.pid, "SIGUSR2");
    stdio.stdin.write("last\n");
    await said.until(() => said.text.endsWith("last\n"));
    expect(said.text).toBe(`${Array.from({ length: keeper.answer.taken }, (_, i) => line(i)).join("")}last\n`);
  });

  test("is taken from the connection that was made last, whichever is read first", async () => {
    await using kept = await keep({ source: echo });
    signal(kept.identity.pid, "SIGSTOP");
    const [older, newer] = [new RawConnection(kept), new RawConnection(kept)];
    const answered = newer.from(0);
    await older.write("\u0001from 0 1\nold\n");
    signal(kept.identity.pid, "SIGCONT");
    await answered;
    await older.said.ended;
    await newer.write("new\n");
    await newer.said.until(() => newer.said.text.endsWith("new\n"));
  });

  test("that is too long, or comes before the first word of a connection, ends the connection", async () => {
    await using kept = await keep({ source: echo, limits: { maxLineBytes: 1_000 } });
    const mute = new RawConnection(kept);
    await mute.write("{}\n");
    expect(await mute.said.ended).toBe("");
    const wild = await raw(kept);
    await wild.write("x".repeat(1_001));
    await wild.said.ended;
    for (const word of ["from x 1", "from"]) {
      const wrong = new RawConnection(kept);
      await wrong.write(`\u0001${word}\n`);
      expect(await wrong.said.ended).toBe("");
    }
    const { stdio, keeper, said } = await kept.takeOver(0);
    expect(keeper.answer.taken).toBe(0);
    stdio.stdin.write("ok\n");
    await said.until(() => said.text === "ok\n");
  });

  test("that is a marked prompt is known by its id until it is forgotten", async () => {
    await using kept = await keep({ source: echo });
    const first = await raw(kept);
    await first.write('\u0001mark p:1\n{"n":1}\n\u0001mark p:2\n{"n":2}\n{"n":3}\n\u0001mark p:3\n{"half');
    await first.output(24);
    await first.close();
    const second = new RawConnection(kept);
    expect(await second.from(24)).toMatchObject({ given: ["p:1", "p:2"], taken: 3, inexact: false, ending: false });
    await second.write('\u0001forget p:1\n\u0001inexact\n\u0001unknown word\n{"n":4}\n');
    await second.output(8);
    await second.close();
    const { stdio, keeper, said } = await kept.takeOver(32);
    expect(keeper.answer).toMatchObject({ given: ["p:2"], taken: 4, inexact: true });
    keeper.mark("p:5");
    stdio.stdin.write('{"n":5}\n');
    keeper.forget("p:2");
    await said.until(() => said.bytes === 8);
    stdio.stdin.end();
    await stdio.exited;
    expect(kept.rest()).toMatchObject({ given: ["p:5"], taken: 5, inexact: true, ending: true, code: 3 });
  });
});

describe("a connection that breaks while both live", () => {
  test("is replaced without a byte lost or doubled", async () => {
    const source = `${write} let i = 0; setInterval(async () => { await write("line " + i++ + "\\n") }, 1); ${echo}`;
    await using kept = await keep({ source });
    const { stdio, said } = await kept.takeOver(0);
    for (let i = 0; i < 5; i += 1) {
      const before = said.bytes;
      const other = await raw(kept, 0);
      await other.close();
      await said.until(() => said.bytes > before + 20);
    }
    expect(stdio.stdin.destroyed).toBe(false);
    stdio.stdin.end();
    expect(await stdio.exited).toEqual({ code: 3, signal: null });
    expect(said.text).toBe(Array.from(said.text.trim().split("\n"), (_, i) => `line ${i}\n`).join(""));
  });

  test("fails if a line of input was lost with it", async () => {
    const source = `const full = setInterval(() => {
      if (process.stdin.readableLength === 0) return;
      process.stdout.write("full\\n");
      clearInterval(full);
      setInterval(() => {}, 1_000);
    }, 1);`;
    await using kept = await keep({ source });
    const { stdio, said } = await kept.takeOver(0);
    const failed = new Promise<Error>((resolve) => void stdio.stdin.once("error", resolve));
    // The keeper does not read what comes after more than the program's stream holds.
    stdio.stdin.write(`${"x".repeat(100_000)}\n`);
    await said.until(() => said.text === "full\n");
    stdio.stdin.write("unread\n");
    await vi.waitFor(() => expect(stdio.stdin.writableLength).toBe(0), patience);
    const other = await raw(kept, 0);
    await other.close();
    expect((await failed).message).toBe("The connection to pi broke.");
    signal(kept.identity.pid, "SIGKILL");
    stdio.stdout.resume();
    expect(await stdio.exited).toMatchObject({ unknown: true });
  });
});

describe("a process", () => {
  test("that was killed has an unknown end, and no keeper", async () => {
    await using kept = await keep({ source: echo });
    signal(kept.identity.pid, "SIGKILL");
    const stdio = await kept.connect(0);
    stdio?.stdout.resume();
    expect(stdio?.keeper).toBeUndefined();
    expect(await stdio?.exited).toEqual({ code: null, signal: null, unknown: true });
    expect(stdio?.hasEnded).toBe(true);
  });

  test("that does not answer is not waited for", async () => {
    await using kept = await keep({ source: echo });
    signal(kept.identity.pid, "SIGSTOP");
    expect(await kept.connect(0, 100)).toBeUndefined();
    signal(kept.identity.pid, "SIGCONT");
    const { stdio, said } = await kept.takeOver(0);
    stdio.stdin.write("still there\n");
    await said.until(() => said.text === "still there\n");
  });

  test("is not trusted if others could have made its socket, or if it is another one", async () => {
    await using kept = await keep({ source: echo });
    const { place, identity } = kept;
    expect([statSync(place.socket).mode & 0o777, readdirSync(join(kept.root, "k"))]).toEqual([0o600, ["12345678"]]);
    for (const [path, mode] of [
      [place.socket, 0o666],
      [join(kept.root, "k"), 0o755],
    ] as const) {
      const before = statSync(path).mode;
      chmodSync(path, mode);
      expect(await kept.connect(0, 100)).toBeUndefined();
      chmodSync(path, before);
    }
    Object.assign(identity, { childId: "another" });
    expect(await kept.connect(0, 100)).toBeUndefined();
  });

  test("has the arguments, streams and umask that it would have without a keeper, and shares nothing of it", async () => {
    const report = `JSON.stringify([process.execArgv, Object.keys(process.env).filter((name) => name.startsWith("PI_RPCD_K"))])`;
    const source = `
      import { execFileSync, fork, spawnSync } from "node:child_process";
      import { writeFileSync } from "node:fs";
      import { once } from "node:events";
      import { Worker } from "node:worker_threads";
      if (process.argv[2] === "forked") { process.send(${report}); process.disconnect(); }
      else {
        const own = [process.argv.slice(1), process.umask(), process.stdin.fd, process.stdout.fd, process.stderr.fd];
        writeFileSync("worker.mjs", 'import { parentPort } from "node:worker_threads"; parentPort.postMessage(${report}); console.log("from a worker");');
        const worker = new Worker(new URL("./worker.mjs", import.meta.url));
        const workerEnd = once(worker, "exit");
        const [fromWorker] = await once(worker, "message");
        const forked = fork(process.argv[1], ["forked"]);
        const [fromFork] = await once(forked, "message");
        const noise = "for (const fd of [1, 2]) require('node:fs').writeSync(fd, 'noise ' + fd)";
        const inherited = spawnSync(process.execPath, ["-e", noise], { stdio: "inherit" }).status;
        const streams = spawnSync(process.execPath, ["-e", noise], { stdio: [process.stdin, process.stdout, process.stderr] }).status;
        const input = spawnSync("cat", { stdio: ["inherit", "pipe", "inherit"] }).stdout.length;
        const env = execFileSync("env", { encoding: "utf8" });
        // Then its output has been passed on.
        await workerEnd;
        console.log(JSON.stringify({ own, report: ${report}, fromWorker, fromFork, inherited, streams, input, env }));
        process.exit();
      }`;
    const umask = process.umask(0o027);
    try {
      await using kept = await keep({ source });
      const { stdio, said } = await kept.takeOver(0);
      expect(await stdio.exited).toEqual({ code: 0, signal: null });
      const clean = JSON.stringify([process.execArgv.slice(0, 0), []]);
      const [first, second, ...more] = said.text.split("\n").toSorted((a, b) => a.length - b.length);
      expect([first, second, more.length]).toEqual(["", "from a worker", 1]);
      const { env, ...found } = JSON.parse(more[0] ?? "");
      expect(found).toEqual({
        own: [[join(kept.root, "program.mjs")], 0o027, 0, 1, 2],
        ...{ report: clean, fromWorker: clean, fromFork: clean, inherited: 0, streams: 0, input: 0 },
      });
      expect(env).not.toMatch(/keeper|12345678/);
      expect(stdio.stderrTail).toBe("noise 1noise 2noise 1noise 2".replaceAll("noise 1", ""));
      expect(statSync(join(kept.place.directory, "rest")).mode & 0o777).toBe(0o600);
    } finally {
      process.umask(umask);
    }
  });

  test("does not end because its stderr is on a full disk", async () => {
    const source = `
      import { closeSync, openSync } from "node:fs";
      closeSync(2);
      openSync("/dev/full", "w");
      for (let i = 0; i < 1_000; i += 1) console.error("x".repeat(1_000));
      process.stderr.write("y", () => { ${echo} });`;
    await using kept = await keep({ source: process.platform === "linux" ? source : echo });
    const { stdio, said } = await kept.takeOver(0);
    stdio.stdin.write("alive\n");
    await said.until(() => said.text === "alive\n");
  });

  test("ends as usual when its directory is gone", async () => {
    await using kept = await keep({ source: echo });
    rmSync(kept.place.directory, { recursive: true });
    const { stdio, said } = await kept.takeOver(0);
    stdio.stdin.write("alive\n");
    await said.until(() => said.text === "alive\n");
    stdio.stdin.end();
    expect(await stdio.exited).toMatchObject({ unknown: true });
    expect([await kept.ended, stdio.stderrTail]).toEqual([{ code: 3, signal: null }, ""]);
    mkdirSync(kept.place.directory);
  });

  test("keeps the end of a long stderr, also of what its children write there", async () => {
    const source = `
      import { spawnSync } from "node:child_process";
      for (let i = 0; i < 3_000; i += 1) console.error("x".repeat(999));
      spawnSync("sh", ["-c", "echo the end >&2"], { stdio: "inherit" });
      ${echo}`;
    await using kept = await keep({ source });
    const { stdio } = await kept.takeOver(0);
    const file = join(kept.place.directory, "stderr");
    const { end: before } = stdio.stderrAfter(0, 0);
    await vi.waitFor(() => expect(statSync(file).size).toBe(64 * 1024), patience);
    const { bytes, end } = stdio.stderrAfter(0, 20);
    expect(bytes.toString()).toMatch(/^x+\nthe end\n$/);
    expect([end >= before, stdio.stderrAfter(end, 20).bytes.length]).toEqual([true, 0]);
    expect(stdio.stderrAfter(end - 4, 20).bytes.toString()).toBe("end\n");
    expect(stdio.stderrTail).toMatch(/^x+\n(?:x{999}\n)+the end\n$/);
  });

  test("begins though the paths of its keeper and itself have blanks and signs", async () => {
    const directory = mkdtempSync(join(tmpdir(), "a b%41#?'-"));
    try {
      const copy = join(directory, "keeper.ts");
      copyFileSync(keeper, copy);
      await using kept = await keep({ source: echo, keeper: copy, prefix: "c d%41#?'-" });
      const { stdio, said } = await kept.takeOver(0);
      stdio.stdin.write("here\n");
      await said.until(() => said.text === "here\n");
    } finally {
      rmSync(directory, { recursive: true });
    }
  });

  test("ends by itself when nothing keeps it, and leaves its output", async () => {
    await using kept = await keep({ source: `process.stdout.write("done\\n"); process.exitCode = 4;` });
    expect(await kept.ended).toEqual({ code: 4, signal: null });
    expect(kept.rest()).toMatchObject({ code: 4, text: "done\n" });
    expect(existsSync(kept.place.socket)).toBe(false);
  });
});

describe("a process without a daemon", () => {
  const hook = `const hook = globalThis[Symbol.for("pi-rpcd.keeper")];`;
  const hasEnded = async (kept: Kept) => {
    await kept.ended;
    return kept.rest();
  };

  test("ends when it was idle for its time", async () => {
    await using kept = await keep({ source: echo, limits: { orphanIdleMs: 1 } });
    const daemon = await raw(kept);
    await daemon.write("line\n");
    await daemon.output(5);
    await daemon.close();
    expect(await hasEnded(kept)).toMatchObject({ code: 3, ending: true, text: "line\n" });
  });

  test("ends when no daemon has ever connected", async () => {
    await using kept = await keep({ source: echo, limits: { firstConnectionMs: 1 } });
    expect(await hasEnded(kept)).toMatchObject({ code: 3, ending: true });
  });

  test("goes on while it is at work, at most for its time", async () => {
    const source = `${hook} hook.isAtWork = () => { process.stdout.write("asked\\n"); return true; }; ${echo}`;
    await using kept = await keep({ source, limits: { orphanIdleMs: 1, orphanRunMs: 100 } });
    await (await raw(kept)).close();
    expect((await hasEnded(kept)).text).toMatch(/^asked\n(?:asked\n)+$/);
  });

  test("goes on until its work has ended", async () => {
    const source = `${hook} let asked = 0;
      hook.isAtWork = () => { process.stdout.write("asked\\n"); if (asked++ > 1) throw new Error("broken"); return true; };
      ${echo}`;
    await using kept = await keep({ source, limits: { orphanIdleMs: 1 } });
    await (await raw(kept)).close();
    expect((await hasEnded(kept)).text).toMatch(/^(?:asked\n){3,}$/);
  });

  test.each([
    ["without a handler of SIGTERM", "", 143],
    ["with one", `process.on("SIGTERM", () => process.exit(7));`, 7],
    ["that ignores it", `process.on("SIGTERM", () => {});`, 143],
  ])("ends though it ignores the end of its input, %s", async (_how, handler, code) => {
    const source = `${handler} process.stdout.write("kept\\n"); process.stdin.resume(); setInterval(() => {}, 1_000);`;
    await using kept = await keep({ source, limits: { orphanIdleMs: 1, endStepMs: 1 } });
    await (await raw(kept)).close();
    expect(await hasEnded(kept)).toMatchObject({ code, text: "kept\n" });
  });

  test("that was told to end before is ended without waiting for a new one", async () => {
    const source = `process.stdin.resume(); setInterval(() => {}, 1_000);`;
    await using kept = await keep({ source, limits: { endStepMs: 1 } });
    const daemon = await raw(kept);
    await daemon.write("\u0001end\n");
    await daemon.close();
    expect(await hasEnded(kept)).toMatchObject({ code: 143, ending: true });
  });
});
