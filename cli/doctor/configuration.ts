import { createValidator } from "../../protocol/validation.ts";
import { type Configuration, configure } from "../../server/configuration/configuration.ts";
import { reportOf } from "../errors.ts";
import { bad, type Finding, good } from "./finding.ts";

const name = "configuration";

/** Checks the configuration of a daemon in this environment, and returns the pi that its file names. */
export function checkConfiguration(
  file: string | undefined,
  env: NodeJS.ProcessEnv,
): { readonly finding: Finding; readonly pi?: string | undefined } {
  let found: Configuration;
  try {
    found = configure({ file, env }, createValidator());
  } catch (error) {
    const todo = "Fix or remove the named setting; no daemon starts with it. See: pi-rpcd config --help";
    return { finding: bad(name, reportOf(error).message, todo) };
  }
  const { path, exists } = found.file;
  const pi = found.origins.pi.kind === "file" ? found.values.pi : undefined;
  return { finding: good(name, exists ? path : `no file (${path}); defaults`), pi };
}
