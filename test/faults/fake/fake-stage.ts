import { mkdirSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Client, SessionHandle } from "../../../client/index.ts";
import { readDaemonFile } from "../../../client/index.ts";
import { EventVerifier } from "../../helpers/event-verifier.ts";
import { type KillableStage, startKillableStage } from "../../helpers/killable-stage.ts";

export const fakePi = join(import.meta.dirname, "..", "..", "fixtures", "fake-pi.mjs");

/** A daemon as a separate process, and fake pis with individual misbehaviours. */
export interface FakeStage extends AsyncDisposable {
  readonly root: string;
  readonly client: Client;
  /** A session whose child misbehaves in this way, followed from its beginning. */
  session(...behaviours: string[]): Promise<Followed>;
  /** The daemon's resident memory now, and its peak, in MiB. */
  memory(): Promise<{ readonly now: number; readonly peak: number }>;
  /** Restarts the measurement of the peak. */
  forgetPeak(): Promise<void>;
  /** How many sockets and files the daemon has open besides its store's: its children's pipes are sockets, too. */
  descriptors(): Promise<number>;
}

export interface Followed {
  readonly handle: SessionHandle;
  readonly witness: EventVerifier;
}

export interface FakeStageOptions {
  /** Default: the fake pi that takes orders from prompts. */
  readonly pi?: string;
  /** A command that runs the daemon, with its arguments. */
  readonly prefix?: readonly string[];
  /** The text of the daemon's configuration file. Default: no file. */
  readonly config?: string;
}

/** Lines of pi that are handled in slices, each followed by a short one; numbered. */
export function largeLines(count: number): readonly string[] {
  return Array.from({ length: 2 * count }, (_, n) => {
    const record =
      n % 2 === 0 ? { type: "tool_execution_end", n, text: "é".repeat(512 * 1024) } : { type: "marker", n };
    return `${JSON.stringify(record)}\n`;
  });
}

/** The open files of a process, by this directory of descriptors. */
function openIn(directory: string): readonly string[] {
  return readdirSync(directory).flatMap((name) => {
    try {
      return readlinkSync(join(directory, name));
    } catch {
      // It was closed in the meantime.
      return [];
    }
  });
}

/** On a slow disk the store starts a thread with its own event loop and database connection. */
function isOfStore(opened: string): boolean {
  return /^(anon_inode|pipe):/.test(opened) || /\/store\.(db(-wal|-shm)?|mark)$/.test(opened);
}

export async function startFakeStage({ pi = fakePi, prefix = [], ...more }: FakeStageOptions = {}): Promise<FakeStage> {
  const stage: KillableStage = await startKillableStage({ pi, prefix, ...more });
  const witnesses: EventVerifier[] = [];
  let sessions = 0;
  const pid = async (): Promise<number> => (await readDaemonFile(stage.stateDir)).pid;
  return {
    root: stage.root,
    get client() {
      return stage.client;
    },
    session: async (...behaviours) => {
      sessions += 1;
      const cwd = join(stage.cwd, `s${sessions}`);
      mkdirSync(cwd);
      writeFileSync(join(cwd, ".fake-pi"), behaviours.join(","));
      const handle = await stage.client.createSession({ cwd });
      const witness = new EventVerifier(handle.id);
      witnesses.push(witness);
      await witness.follow(await readDaemonFile(stage.stateDir));
      return { handle, witness };
    },
    memory: async () => {
      const status = readFileSync(`/proc/${await pid()}/status`, "utf8");
      const mebibytes = (name: string): number => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1]) / 1_024;
      return { now: mebibytes("VmRSS"), peak: mebibytes("VmHWM") };
    },
    forgetPeak: async () => writeFileSync(`/proc/${await pid()}/clear_refs`, "5"),
    descriptors: async () => openIn(`/proc/${await pid()}/fd`).filter((opened) => !isOfStore(opened)).length,
    [Symbol.asyncDispose]: async () => {
      const violations = witnesses.flatMap((witness) => witness.violations);
      for (const witness of witnesses) await witness.leave();
      await stage[Symbol.asyncDispose]();
      if (violations.length > 0)
        throw new Error(`The log's numbers do not add up: ${violations.slice(0, 5).join("; ")}`);
    },
  };
}
