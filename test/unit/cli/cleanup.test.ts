import { expect, test } from "vitest";
import { Cleanup } from "../../../cli/cleanup.ts";

test("everything is undone in reverse order, once, even if a step fails", async () => {
  const done: string[] = [];
  const cleanup = new Cleanup();
  cleanup.add(() => done.push("first"));
  cleanup.add(() => {
    throw new Error("second failed");
  });
  cleanup.add(async () => {
    await Promise.resolve();
    done.push("third");
  });
  await expect(Promise.all([cleanup.run(), cleanup.run()])).rejects.toThrow("second failed");
  expect(done).toEqual(["third", "first"]);
});
