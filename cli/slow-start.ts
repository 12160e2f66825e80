import type { Output } from "./output.ts";

const slowAfterMs = 3_000;

/** Waits for a session whose pi starts, and prints a note on stderr if that takes long. */
export async function noteIfSlow<T>(started: Promise<T>, output: Output): Promise<T> {
  const timer = setTimeout(() => {
    const why = "The usual reasons are slow extensions and a busy machine.";
    output.note("still_starting", `pi is still starting after ${slowAfterMs / 1_000} s. ${why}`);
  }, slowAfterMs);
  try {
    return await started;
  } finally {
    clearTimeout(timer);
  }
}
