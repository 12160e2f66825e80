import { run } from "./run.ts";

/** The duration of a sync on the slow disk. */
const slowSyncUs = 5_000;

/** A program, with its arguments, under which each sync takes 5 ms. Undefined if this machine has none. */
export async function slowDisk(): Promise<readonly string[] | undefined> {
  const under = ["strace", "-f", "-qq", "--seccomp-bpf", "-o", "/dev/null", "-e", "trace=fdatasync,fsync"];
  const delayed = [...under, "-e", `inject=fdatasync,fsync:delay_exit=${slowSyncUs}`];
  const { code } = await run(delayed[0] ?? "", [...delayed.slice(1), "true"], { stdout: "ignore" });
  return code === 0 ? delayed : undefined;
}
