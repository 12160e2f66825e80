import type { Command } from "./command.ts";

/** Every command, loaded when it is asked for: `--help` and `status` start fast. */
export const commands: Readonly<Record<string, () => Promise<Command>>> = {
  start: async () => (await import("./start.ts")).start,
  stop: async () => (await import("./stop.ts")).stop,
  status: async () => (await import("./status.ts")).status,
  ls: async () => (await import("./ls.ts")).ls,
  new: async () => (await import("./new.ts")).newSession,
  prompt: async () => (await import("./prompt.ts")).prompt,
  push: async () => (await import("./push.ts")).push,
  demo: async () => (await import("./demo.ts")).demo,
};
