import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import {
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { WireError } from "../../../protocol/errors.ts";
import { Lease, type LeaseFacts, leasePath } from "../../../server/pi/lease.ts";
import { type LeaseHolder, thisHolder } from "../../../server/pi/lease-holder.ts";

const taker = join(import.meta.dirname, "..", "..", "fixtures", "custody", "lease-taker.ts");

let root: string;
let file: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "lease-"));
  file = join(root, "session.jsonl");
});
afterEach(() => rmSync(root, { recursive: true }));

const take = (daemonId: string, path = file): Promise<Lease> =>
  Lease.take({ file: path, daemonId, stateDir: join(root, daemonId), generation: 1 });

async function refusal(attempt: Promise<unknown>): Promise<Pick<WireError, "kind" | "data">> {
  return await attempt.then(
    () => {
      throw new Error("it was not refused");
    },
    (error: WireError) => error,
  );
}

const names = (): string[] => readdirSync(root).sort();

interface Taker extends AsyncDisposable {
  readonly process: ChildProcess;
  readonly said: { readonly taken: boolean; readonly kind?: string; readonly data?: { owner?: { pid?: number } } };
}

/** Another daemon's process. */
async function startTaker(stateDir: string): Promise<Taker> {
  const child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", taker, file, join(root, stateDir)], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const exited = once(child, "exit");
  const [line] = (await once(child.stdout, "data")) as [Buffer];
  return {
    process: child,
    said: JSON.parse(line.toString("utf8")),
    [Symbol.asyncDispose]: async () => {
      child.stdin.end();
      await exited;
    },
  };
}

/** A lease left by this holder. */
function leave(holder: LeaseHolder, path = leasePath(file), id = "left-behind"): void {
  const facts: LeaseFacts = { lease: 1, id, holder, daemonId: "d", stateDir: "/nowhere", generation: 3, at: 1 };
  writeFileSync(path, JSON.stringify(facts));
}

/** A process that has ended. */
async function deadHolder(): Promise<LeaseHolder> {
  const child = spawn("true");
  await once(child, "exit");
  return { ...(await thisHolder()), pid: child.pid as number };
}

describe("a lease", () => {
  test("is a private file next to the session's, with a name that pi does not list", async () => {
    const lease = await take("one");
    expect(names()).toEqual(["session.jsonl.lease"]);
    expect(statSync(leasePath(file)).mode & 0o777).toBe(0o600);
    const facts = JSON.parse(readFileSync(leasePath(file), "utf8")) as LeaseFacts;
    expect(facts).toMatchObject({ lease: 1, stateDir: join(root, "one"), generation: 1, holder: { pid: process.pid } });
    await lease.note({ childId: "child", pid: process.pid, survives: false }, 2);
    expect(JSON.parse(readFileSync(leasePath(file), "utf8"))).toMatchObject({ childId: "child", generation: 2 });
    expect(await lease.confirm()).toEqual({ kind: "held" });
    await lease.release();
    expect(names()).toEqual([]);
  });

  test("of another living daemon is refused with its owner, until that daemon ends gracefully", async () => {
    const lease = await take("one");
    await using other = await startTaker("other");
    expect(other.said).toMatchObject({ taken: false, kind: "session_in_use" });
    expect(other.said.data?.owner).toMatchObject({ pid: process.pid, stateDir: join(root, "one"), generation: 1 });
    await lease.release();
    {
      await using next = await startTaker("next");
      expect(next.said).toEqual({ taken: true });
      const { data } = await refusal(take("one"));
      expect(data["owner"]).toMatchObject({ pid: next.process.pid });
    }
    await (await take("one")).release();
  });

  test("of a killed daemon goes to exactly one of the next claimants", async () => {
    for (let round = 0; round < 3; round += 1) {
      const first = await startTaker("first");
      expect(first.said).toEqual({ taken: true });
      first.process.kill("SIGKILL");
      await once(first.process, "exit");
      const others = await Promise.all(["a", "b", "c"].map(startTaker));
      expect(others.filter(({ said }) => said.taken)).toHaveLength(1);
      for (const { said } of others.filter(({ said: { taken } }) => !taken)) expect(said.kind).toBe("session_in_use");
      await Promise.all(others.map((other) => other[Symbol.asyncDispose]()));
      expect(names()).toEqual([]);
    }
  });

  test("of a dead process goes to exactly one claimant, however many claim it concurrently", async () => {
    const dead = await deadHolder();
    for (let round = 0; round < 25; round += 1) {
      leave(dead);
      // In some rounds the last one to take over has died while doing so.
      if (round % 3 === 0) leave(dead, `${leasePath(file)}~left-beh`, "guard-left");
      const attempts = await Promise.allSettled(Array.from({ length: 8 }, (_, index) => take(`daemon ${index}`)));
      const taken = attempts.filter((attempt) => attempt.status === "fulfilled");
      expect(taken).toHaveLength(1);
      await taken[0]?.value.release();
      expect(names()).toEqual([]);
    }
  });

  test("of a process whose number another process has by now is taken over; so is one from before the last boot", async () => {
    const own = await thisHolder();
    leave({ ...own, startTime: "1" });
    await (await take("one")).release();
    leave({ ...own, bootId: "another start of this machine" });
    await (await take("one")).release();
    expect(names()).toEqual([]);
  });

  test("of another machine or container is never taken over", async () => {
    const dead = await deadHolder();
    for (const holder of [
      { ...dead, host: "elsewhere", bootId: "another" },
      { ...dead, pidSpace: "pid:[1]" },
    ]) {
      leave(holder);
      const { kind, data } = await refusal(take("one"));
      expect([kind, data["owner"]]).toMatchObject(["session_in_use", { host: holder.host, stateDir: "/nowhere" }]);
    }
  });

  test("left by a former daemon of the same state directory is taken over, though its process lives", async () => {
    const request = { file, stateDir: join(root, "same"), generation: 1 };
    await Lease.take({ ...request, daemonId: "former" });
    await (await Lease.take({ ...request, daemonId: "next" })).release();
    expect(names()).toEqual([]);
  });

  test("left in a deleted container is taken over by the owner of its state directory, not by path alone", async () => {
    const own = await thisHolder();
    const [stateDir, other] = [join(root, "state"), join(root, "other")];
    for (const directory of [stateDir, other]) mkdirSync(directory);
    const idOf = (path: string) => `${statSync(path).dev}:${statSync(path).ino}`;
    const inContainer = { ...own, host: "c0ffee", pidSpace: "pid:[1]", pid: 1 };
    const attempt = (holder: LeaseHolder, of: string): Promise<Lease> => {
      const facts = { lease: 1, id: "left-behind", holder, daemonId: "former", generation: 3, at: 1 };
      writeFileSync(leasePath(file), JSON.stringify({ ...facts, stateDir, stateDirId: idOf(of) }));
      return Lease.take({ file, daemonId: "next", stateDir, generation: 4 });
    };
    await (await attempt(inContainer, stateDir)).release();
    await (await attempt(own, stateDir)).release();
    // The same path, seen from a process that has another directory there; and the same numbers on another machine.
    expect(await refusal(attempt(own, other))).toMatchObject({ kind: "session_in_use" });
    expect(await refusal(attempt(inContainer, other))).toMatchObject({ kind: "session_in_use" });
    const elsewhere = { ...inContainer, bootId: "another" };
    expect(await refusal(attempt(elsewhere, stateDir))).toMatchObject({ kind: "session_in_use" });
  });

  test("that is empty keeps others out, unless the machine has been booted since", async () => {
    writeFileSync(leasePath(file), "");
    expect(await refusal(take("one"))).toMatchObject({ kind: "session_in_use", data: { reason: "unreadable_lease" } });
    utimesSync(leasePath(file), 1, 1);
    await (await take("one")).release();
    expect(names()).toEqual([]);
  });

  test("that was deleted is taken again; one that another daemon holds by now is lost, and not deleted", async () => {
    const lease = await take("one");
    rmSync(leasePath(file));
    expect(await lease.confirm()).toEqual({ kind: "retaken" });
    rmSync(leasePath(file));
    await using other = await startTaker("other");
    expect(other.said).toEqual({ taken: true });
    const lost = await lease.confirm();
    expect(lost).toMatchObject({ kind: "lost", error: { kind: "session_in_use" } });
    await lease.release();
    expect(names()).toEqual(["session.jsonl.lease"]);
  });

  test("is refused by name for files that it cannot protect", async () => {
    const other = join(root, "other.jsonl");
    writeFileSync(other, "");
    symlinkSync(other, file);
    const reasonOf = async (path: string): Promise<unknown> => {
      const { kind, data } = await refusal(take("one", path));
      return [kind, data["reason"]];
    };
    expect(await reasonOf(file)).toEqual(["session_file_unusable", "symbolic_link"]);
    linkSync(other, join(root, "second.jsonl"));
    expect(await reasonOf(other)).toEqual(["session_file_unusable", "hard_link"]);
    mkdirSync(join(root, "directory.jsonl"));
    expect(await reasonOf(join(root, "directory.jsonl"))).toEqual(["session_file_unusable", "not_a_file"]);
    expect(await reasonOf(join(root, "missing", "x.jsonl"))).toEqual(["session_file_unusable", "directory_missing"]);
    const long = join(root, `${"x".repeat(245)}.jsonl`);
    expect(await reasonOf(long)).toEqual(["session_file_unusable", "name_too_long"]);
    expect(names().filter((name) => name.includes(".lease"))).toEqual([]);
  });
});
