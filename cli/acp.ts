import { defined } from "../protocol/objects.ts";
import type { Invocation } from "./invocation.ts";

/** Speaks the Agent Client Protocol on stdin and stdout, or logs in. Resolves with the exit code. */
export async function acp(invocation: Invocation<"acp">): Promise<number> {
  const { options, env } = invocation;
  if (options.login === true) return await login(invocation);
  const { model, thinking, profile } = options;
  const { serve } = await import("./acp/serve.ts");
  return await serve({
    stateDir: options["state-dir"],
    env,
    created: defined({ model, thinking, profile }),
    abortsOnDetach: options["on-detach"] === "abort",
    hasVersion2: options.v2 === true,
  });
}

/** Runs pi in this terminal, whose `/login` stores what the daemon's sessions use. */
async function login({ options, output, ...invocation }: Invocation<"acp">): Promise<number> {
  const { pi } = await import("./pi.ts");
  output.aside("Write /login to log in to a provider, and /quit when it is done.");
  return await pi({ ...invocation, output, options: { ...options }, arguments: [] } as Invocation<"pi">);
}
