import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { DAEMON_FILE_NAME, type DaemonFile } from "../../protocol/daemon-file.ts";
import { runNode } from "../lib/commands.ts";
import { commandLine } from "../lib/daemon-under-test.ts";
import { within } from "../lib/deadline.ts";
import { echoPi } from "../lib/echo-sources.ts";
import type { Figure } from "../lib/figure.ts";
import { cpuMicroseconds, reapedCpuMilliseconds } from "../lib/process-usage.ts";
import { interleave, ratios } from "../lib/statistics.ts";

const bareNode = join(import.meta.dirname, "..", "fixtures", "bare-node.mjs");

export const daemonStart: Figure = {
  title: "Processor time of pi-rpcd start, against a Node that loads http, ws and sqlite",
  goals: ["Q3"],
  repetitions: 9,
  measure: async (setting, resources) => {
    const program = commandLine(setting);
    const command: number[] = [];
    const elapsed: number[] = [];
    let count = 0;
    const cpu = await interleave(setting.repetitions, {
      bare: async () => {
        const child = spawn(process.execPath, [bareNode], { stdio: ["pipe", "pipe", "inherit"] });
        resources.add(child, () => void child.kill());
        await within(20, "the start of the bare Node", once(child.stdout, "data"));
        const used = cpuMicroseconds(child.pid ?? -1) / 1_000;
        const gone = once(child, "exit");
        child.stdin.end();
        await gone;
        return used;
      },
      daemon: async () => {
        count += 1;
        const stateDir = join(setting.directory, `start-${count}`);
        const env = { ...process.env, PI_RPCD_STATE_DIR: stateDir, PI_RPCD_WARM_CHILDREN: "0" };
        const before = reapedCpuMilliseconds();
        const { ms } = await runNode([program, "start", "--pi", echoPi], env);
        command.push(reapedCpuMilliseconds() - before);
        elapsed.push(ms);
        const { pid } = JSON.parse(readFileSync(join(stateDir, DAEMON_FILE_NAME), "utf8")) as DaemonFile;
        const used = cpuMicroseconds(pid) / 1_000;
        await runNode([program, "stop"], env);
        return used;
      },
    });
    for (const values of [command, elapsed]) values.shift();
    const whole = cpu.daemon.map((value, i) => value + (command[i] ?? Number.NaN));
    return {
      rows: [
        {
          name: "the daemon until it listens / a bare Node",
          unit: "x",
          values: ratios(cpu.daemon, cpu.bare),
          goals: ["Q3"],
        },
        { name: "the daemon and the command / a bare Node", unit: "x", values: ratios(whole, cpu.bare) },
        { name: "a bare Node", unit: "ms", values: cpu.bare },
        { name: "the daemon", unit: "ms", values: cpu.daemon },
        { name: "the command that starts it, to 10 ms", unit: "ms", values: command },
        { name: "elapsed time until the command returns", unit: "ms", values: elapsed },
      ],
      notes: ["the build, with the compile cache of its first start"],
    };
  },
};
