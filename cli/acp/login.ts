import type { Invocation } from "../invocation.ts";
import { pi } from "../pi.ts";

/** Runs pi in this terminal, whose `/login` stores what the daemon's sessions use. Resolves with pi's exit code. */
export async function login({ options, output, ...invocation }: Invocation<"acp">): Promise<number> {
  output.aside("Write /login to log in to a provider, and /quit when it is done.");
  return await pi({ ...invocation, output, options: { ...options }, arguments: [] } as Invocation<"pi">);
}
