import { createValidator } from "../../protocol/validation.ts";
import { configure } from "../../server/configuration/configuration.ts";
import { locatePi } from "../../server/pi/locate.ts";
import type { PiProgram } from "../../server/pi/spawn-options.ts";

/** The pi that a daemon with this environment would use. */
export async function ownPi(env: NodeJS.ProcessEnv): Promise<PiProgram> {
  const { values, origins } = configure({ file: undefined, env }, createValidator());
  return await locatePi({ configured: origins.pi.kind === "file" ? values.pi : undefined, env });
}
