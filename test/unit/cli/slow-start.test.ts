import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { noteIfSlow } from "../../../cli/slow-start.ts";
import { memoryOutput } from "./memory-output.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test.each([
  [{ isTerminal: true }, /^pi-rpcd: pi is still starting after 3 s\. .*\n$/],
  [{ isTerminal: false }, /^pi-rpcd: pi is still starting after 3 s\. .*\n$/],
  [{ json: true }, /^\{"note":\{"name":"still_starting","message":"pi is still starting.*\n$/],
])("a start of pi that takes 3 s is reported once on stderr: %j", async (how, told) => {
  const { output, stdout, stderr } = memoryOutput(how);
  const { promise, resolve } = Promise.withResolvers<string>();
  const result = noteIfSlow(promise, output);
  vi.advanceTimersByTime(2_999);
  expect(stderr()).toBe("");
  vi.advanceTimersByTime(60_000);
  expect(stderr()).toMatch(told);
  resolve("session");
  expect([await result, stdout()]).toEqual(["session", ""]);
});

test("one that ends early prints nothing, whether pi is ready or has failed", async () => {
  const { output, stderr } = memoryOutput();
  await noteIfSlow(Promise.resolve(), output);
  await expect(noteIfSlow(Promise.reject(new Error("no")), output)).rejects.toThrow("no");
  expect([stderr(), vi.getTimerCount()]).toEqual(["", 0]);
});
