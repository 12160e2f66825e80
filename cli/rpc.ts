import { exitCodes } from "./exit-codes.ts";
import type { Invocation } from "./invocation.ts";
import { dropIn, explain } from "./rpc/drop-in.ts";

/** Speaks pi's RPC mode on stdin and stdout, for a session of the daemon. */
export async function rpc({ options, arguments: argv, env, output }: Invocation<"rpc">): Promise<number> {
  if (options.explain === true) {
    output.print(explain({ argv, env }));
    return exitCodes.done;
  }
  return await dropIn({ argv, env, stateDir: options["state-dir"], isStrict: true });
}
