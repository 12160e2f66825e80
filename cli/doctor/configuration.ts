import { createValidator } from "../../protocol/validation.ts";
import { type Configuration, configure } from "../../server/configuration/configuration.ts";
import { reportOf } from "../errors.ts";
import { bad, type Finding, good } from "./finding.ts";

const name = "configuration";

/** Checks the configuration of a daemon in this environment, and returns what else of it the doctor needs. */
export function checkConfiguration(
  file: string | undefined,
  env: NodeJS.ProcessEnv,
): {
  readonly finding: Finding;
  /** The pi that the file names. */
  readonly pi?: string | undefined;
  readonly agentDirectory?: string | undefined;
} {
  let found: Configuration;
  try {
    found = configure({ file, env }, createValidator());
  } catch (error) {
    const todo = "Fix or remove the named setting; no daemon starts with it. See: pi-rpcd config --help";
    return { finding: bad(name, reportOf(error).message, todo) };
  }
  const { path, exists } = found.file;
  const pi = found.origins.pi.kind === "file" ? found.values.pi : undefined;
  const { agentDirectory } = found.values;
  return { finding: good(name, exists ? path : `no file (${path}); the defaults apply`), pi, agentDirectory };
}
