import { expect, test } from "vitest";
import { endingWithDaemon } from "../../helpers/stage.ts";
import { startFakeStage } from "./fake-stage.ts";

for (const [what, behaviour] of [
  ["closes its stdin and stays alive", "close-stdin"],
  ["closes its stdout and stays alive", "close-stdout"],
] as const) {
  test(`a child that ${what} is ended, reported as an exit, and replaced`, async () => {
    // Otherwise a child does not talk to the daemon by these descriptors.
    await using stage = await startFakeStage({ config: endingWithDaemon });
    const neighbour = await stage.session();
    const before = await stage.descriptors();
    // Concurrently, because ending such a child may need every step of the stop ladder.
    const broken = Array.from({ length: 3 }, async () => {
      const { handle, witness } = await stage.session(behaviour);
      const exited = expect.objectContaining({ name: "child_exited" });
      // It may have been answered before the pipe broke.
      await handle.prompt("hello").catch((error: unknown) => expect(error).toMatchObject({ data: exited }));
      // A closed stdin is noticed only at the next write.
      await handle.command({ type: "echo" }).catch((error: unknown) => expect(error).toMatchObject({ data: exited }));
      expect(await witness.state("crashed")).toMatchObject({ exit: { expected: false } });
      return handle;
    });
    for (const handle of await Promise.all(broken)) await handle.close();
    await neighbour.handle.runUntilSettled("hello");
    expect((await neighbour.handle.get()).generation).toBe(1);
    // The followers of the three sessions have a connection each.
    await expect.poll(() => stage.descriptors()).toBeLessThanOrEqual(before + 3);
  });
}
