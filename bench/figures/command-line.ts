import { join } from "node:path";
import { answer } from "../../provider/reply.ts";
import { runNode } from "../lib/commands.ts";
import { commandLine, startDaemonUnderTest } from "../lib/daemon-under-test.ts";
import { echoPi } from "../lib/echo-sources.ts";
import type { Figure, Setting } from "../lib/figure.ts";
import { poolIsFull } from "../lib/pool.ts";
import { RawClient } from "../lib/raw-client.ts";
import { chosenPi, scriptModel } from "../lib/real-pi.ts";
import { interleave, ratios } from "../lib/statistics.ts";

const bareRequest = join(import.meta.dirname, "..", "fixtures", "bare-request.cjs");

/** The duration of short commands, compared with Node's own. */
export const commands: Figure = {
  title: "The command line with a running daemon, against node -e 0",
  goals: ["Q12"],
  repetitions: 15,
  measure: async (setting, resources) => {
    const daemon = await startDaemonUnderTest(setting, resources, { pi: echoPi });
    const client = await RawClient.open(daemon, "unix", resources);
    await client.request("session/create", { cwd: setting.directory });
    const env = environment(setting, daemon.stateDir);
    const time = async (...args: readonly string[]): Promise<number> => (await runNode(args, env)).ms;
    const program = commandLine(setting);
    const times = await interleave(setting.repetitions, {
      node: () => time("-e", "0"),
      bare: () => time(bareRequest, daemon.socketPath, daemon.token),
      ls: () => time(program, "ls"),
      status: () => time(program, "status"),
      help: () => time(program, "--help"),
    });
    return {
      rows: [
        { name: "ls / node -e 0", unit: "x", values: ratios(times.ls, times.node), goals: ["Q12"] },
        { name: "status / node -e 0", unit: "x", values: ratios(times.status, times.node), goals: ["Q12"] },
        { name: "a bare program that makes one call / node -e 0", unit: "x", values: ratios(times.bare, times.node) },
        { name: "--help / node -e 0", unit: "x", values: ratios(times.help, times.node) },
        { name: "node -e 0", unit: "ms", values: times.node },
      ],
      notes: ["the build, with the compile cache of its first start; processes run one after the other"],
    };
  },
};

/** The time until a person sees the answer. */
export const prompt: Figure = {
  title: "The first byte of pi-rpcd prompt, against pi -p with the same provider and the same pi",
  goals: ["Q8 live", "Q8 hibernated", "Q8 new"],
  repetitions: 9,
  measure: async (setting, resources) => {
    const pi = chosenPi();
    const model = await scriptModel(setting, resources, { otherwise: () => answer("Yes.") });
    const started = await startDaemonUnderTest(setting, resources, {
      pi: pi.path,
      env: { ...model.env, PI_RPCD_WARM_CHILDREN: "1" },
    });
    const client = await RawClient.open(started, "unix", resources);
    const env = { ...environment(setting, started.stateDir), ...model.env };
    const program = commandLine(setting);
    const cwd = setting.directory;
    const create = async (): Promise<string> => (await client.request("session/create", { cwd })).sessionId;
    const [live, hibernated] = [await create(), await create()];
    const prompted = async (sessionId: string): Promise<number> =>
      (await runNode([program, "prompt", sessionId, "Hello."], env, cwd)).firstByteMs;
    /** The pool is full, and nothing starts in the background. */
    const rested = (act: () => Promise<number>) => async (): Promise<number> => {
      await poolIsFull(client);
      return await act();
    };
    const times = await interleave(setting.repetitions, {
      pi: rested(async () => (await runNode([pi.path, "-p", "Hello."], env, cwd)).firstByteMs),
      live: rested(() => prompted(live)),
      hibernated: rested(async () => {
        await client.request("session/hibernate", { sessionId: hibernated });
        return await prompted(hibernated);
      }),
      fresh: rested(async () => {
        const created = await runNode([program, "new", "--cwd", cwd], env, cwd);
        const sessionId = created.output.trim();
        const firstByteMs = await prompted(sessionId);
        await client.request("session/close", { sessionId });
        return created.ms + firstByteMs;
      }),
    });
    const row = (name: string, values: readonly number[]) => ({ name, unit: "ms" as const, values });
    return {
      rows: [
        { name: "live session / pi -p", unit: "x", values: ratios(times.live, times.pi), goals: ["Q8 live"] },
        {
          name: "hibernated session / pi -p",
          unit: "x",
          values: ratios(times.hibernated, times.pi),
          goals: ["Q8 hibernated"],
        },
        { name: "new and prompt / pi -p", unit: "x", values: ratios(times.fresh, times.pi), goals: ["Q8 new"] },
        row("pi -p", times.pi),
        row("live session", times.live),
        row("hibernated session", times.hibernated),
        row("new and prompt", times.fresh),
      ],
      notes: [`pi ${pi.version}, whose answer has one piece; a warm child is ready before each value`],
    };
  },
};

function environment({ directory }: Setting, stateDir: string): NodeJS.ProcessEnv {
  return { ...process.env, PI_RPCD_STATE_DIR: stateDir, XDG_CACHE_HOME: join(directory, "cache") };
}
