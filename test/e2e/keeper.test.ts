import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { KeeperLimits } from "../../protocol/keeper.ts";
import { createAgentDir } from "../../provider/agent-dir.ts";
import { Gate } from "../../provider/gate.ts";
import { answer, call, hold } from "../../provider/reply.ts";
import type { Step } from "../../provider/script.ts";
import { startProvider } from "../../provider/server.ts";
import { type Kept, keep, RawConnection } from "../helpers/kept.ts";
import { piUnderTest } from "../helpers/pi-versions.ts";
import type { Unchecked } from "../helpers/unchecked.ts";

const lean = ["-ne", "-np", "-ns", "-nc", "--no-themes"];

interface KeptPi extends AsyncDisposable {
  readonly kept: Kept;
}

/** A real pi with a keeper, and an extension with this text. */
async function keepPi(
  script: readonly Step[],
  { extension = "", limits = {} }: { readonly extension?: string; readonly limits?: Partial<KeeperLimits> } = {},
): Promise<KeptPi> {
  const root = mkdtempSync(join(tmpdir(), "kept-pi-"));
  const provider = await startProvider({ script });
  const agentDir = await createAgentDir({ provider, parentDir: root });
  const file = join(root, "extension.mjs");
  writeFileSync(file, `${extension}\nexport default (pi) => { if (typeof extend !== "undefined") extend(pi); };`);
  const { cli } = piUnderTest();
  const command = [cli, "--mode", "rpc", ...lean, "--no-session", "--model", agentDir.model, "-e", file];
  const kept = await keep({ command, env: agentDir.env, limits });
  return {
    kept,
    async [Symbol.asyncDispose]() {
      await kept[Symbol.asyncDispose]();
      await agentDir.dispose();
      await provider.close();
      rmSync(root, { recursive: true });
    },
  };
}

const line = (record: object) => `${JSON.stringify(record)}\n`;

const recordsIn = (text: string): Unchecked[] =>
  text
    .slice(0, text.lastIndexOf("\n"))
    .split("\n")
    .map((each) => JSON.parse(each));

test("a run goes on without a daemon, and the next one gets each byte once", async () => {
  const gates = [new Gate(), new Gate()] as const;
  const words = Array.from({ length: 400 }, (_, i) => `word${i} `);
  await using pi = await keepPi([
    answer("first ", hold(gates[0]), call("bash", { command: "echo from a tool; echo to stderr >&2" })),
    answer(...words.slice(0, 200), hold(gates[1]), ...words.slice(200)),
  ]);
  const first = new RawConnection(pi.kept);
  await first.from(0);
  await first.write(
    `\u0001mark p:1\n${line({ type: "prompt", id: "p:1", message: "Go." })}${line({ type: "prompt" }).slice(0, 9)}`,
  );
  await first.said.until(() => first.said.text.includes("first "));
  await first.close();
  // Nobody is connected while the tool runs and the second answer begins.
  gates[0].open();
  await gates[1].reached;
  const second = new RawConnection(pi.kept);
  const { given, taken } = await second.from(0);
  expect([given, taken]).toEqual([["p:1"], 1]);
  await second.said.until(() => second.said.text.includes("word199"));
  await second.close();
  const { stdio, said } = await pi.kept.takeOver(1_000);
  gates[1].open();
  await said.until(() => said.text.includes('"agent_settled"'));
  stdio.stdin.write(line({ type: "get_last_assistant_text", id: "text" }));
  await said.until(() => said.text.includes('"id":"text"'));
  stdio.stdin.end();
  expect(await stdio.exited).toEqual({ code: 0, signal: null });
  const all = pi.kept.rest().text;
  expect(all.slice(1_000)).toBe(said.text);
  const records = recordsIn(all);
  expect(records.findLast(({ id }) => id === "text").data.text).toBe(words.join("").trimEnd());
  const deltas = records.flatMap(({ assistantMessageEvent: event }) =>
    event?.type === "text_delta" ? event.delta : [],
  );
  expect(deltas.join("")).toBe(`first ${words.join("")}`);
  expect(records.filter(({ type, role }) => type === "response" && role === undefined).map(({ id }) => id)).toEqual([
    "p:1",
    "text",
  ]);
  expect(pi.kept.stderr).toBe("");
});

const talkative = `
  const extend = (pi) => {
    pi.on("session_shutdown", (_event, ctx) => {
      for (let i = 0; i < 1_200; i += 1) ctx.ui.setStatus("end", "e".repeat(1_000));
    });
  };`;

test.each([
  { how: "the end of its input", codes: [0] },
  { how: "the end of its input without a daemon", isAlone: true, codes: [0] },
  { how: "the end of its input and SIGTERM", isKilled: true, codes: [0, 143] },
])(
  "everything that is written while pi ends is kept, after $how, though its room is full",
  async ({ codes, isAlone, isKilled }) => {
    await using pi = await keepPi([], { extension: talkative, limits: { maxHeldBytes: 100_000 } });
    const daemon = new RawConnection(pi.kept);
    await daemon.from(0);
    // Their answers need more than the room.
    for (let i = 0; i < 40; i += 1) await daemon.write(line({ type: `x${"y".repeat(5_000)}`, id: `${i}` }));
    await daemon.said.until(() => daemon.said.bytes > 100_000);
    await daemon.write("\u0001end\n");
    if (isAlone === true) await daemon.close();
    if (isKilled === true) process.kill(pi.kept.identity.pid, "SIGTERM");
    const { code } = await pi.kept.ended;
    expect(codes).toContain(code);
    const records = recordsIn(pi.kept.rest().text);
    const count = (fits: (record: { readonly id?: string; readonly statusKey?: string }) => boolean) =>
      records.filter(fits).length;
    expect([count(({ statusKey }) => statusKey === "end"), count(({ id = "" }) => /^\d+$/.test(id))]).toEqual([
      1_200, 40,
    ]);
  },
);

test("a full disk under its stderr does not end it, and what it and its tools say there is not among the records", async () => {
  const extension = `
    import { closeSync, openSync, writeSync } from "node:fs";
    import { spawnSync } from "node:child_process";
    const extend = (pi) => {
      pi.registerCommand("full", { description: "", handler: async () => {
        closeSync(2);
        openSync("/dev/full", "w");
        for (let i = 0; i < 100; i += 1) { console.log("log"); console.error("error"); process.stdout.write("out"); }
      }});
      pi.registerCommand("noise", { description: "", handler: async (_, ctx) => {
        console.log("noise of an extension");
        writeSync(1, "noise of a descriptor");
        spawnSync("sh", ["-c", "echo noise of a child; echo complaint of a child >&2"], { stdio: "inherit" });
        ctx.ui.setStatus("execArgv", JSON.stringify(process.execArgv));
      }});
    };`;
  await using pi = await keepPi(
    [answer(call("bash", { command: "env; echo noise >/proc/$PPID/fd/1" })), answer("done")],
    { extension },
  );
  const { stdio, said } = await pi.kept.takeOver(0);
  stdio.stdin.write(line({ type: "prompt", id: "1", message: "/noise" }));
  await said.until(() => said.text.includes('"id":"1"'));
  stdio.stdin.write(line({ type: "prompt", id: "2", message: "Go." }));
  await said.until(() => said.text.includes('"agent_settled"'));
  expect(stdio.stderrTail).toBe("noise of an extension\ncomplaint of a child\n");
  stdio.stdin.write(line({ type: "prompt", id: "3", message: "/full" }));
  stdio.stdin.write(line({ type: "get_state", id: "4" }));
  await said.until(() => said.text.includes('"id":"4"'));
  stdio.stdin.end();
  expect(await stdio.exited).toEqual({ code: 0, signal: null });
  const records = recordsIn(said.text);
  expect(records.find(({ statusKey }) => statusKey === "execArgv").statusText).toBe("[]");
  const [result] = records.find(({ type }) => type === "tool_execution_end").result.content;
  expect(result.text).toContain("PI_CODING_AGENT=true");
  expect(result.text).not.toMatch(/keeper|12345678/i);
});

test("while no daemon reads, the repeated results of a noisy tool are left out, and its end is kept", async () => {
  const gate = new Gate();
  const command = "for i in $(seq 1 1500); do echo line $i of a noisy tool; done; sleep 0.2; echo last";
  await using pi = await keepPi([answer(call("bash", { command })), answer(hold(gate), "done")], {
    limits: { maxHeldBytes: 1_000_000 },
  });
  const daemon = new RawConnection(pi.kept);
  await daemon.from(0);
  await daemon.write(line({ type: "prompt", id: "1", message: "Go." }));
  await daemon.close();
  await gate.reached;
  gate.open();
  const { said } = await pi.kept.takeOver(0);
  const text = await said.until(() => said.text.includes('"agent_settled"'));
  expect(text).toContain('"tool_execution_end"');
  expect(Buffer.byteLength(text)).toBeLessThan(1_000_000);
});

test("the process's own list of variables and arguments names no directory of the keeper's", async () => {
  await using pi = await keepPi([]);
  const [environ = "", cmdline = ""] = ["environ", "cmdline"].map((name) =>
    readFileSync(`/proc/${pi.kept.identity.pid}/${name}`, "utf8"),
  );
  expect([environ, cmdline].filter((text) => text.includes(pi.kept.root))).toEqual([]);
});
