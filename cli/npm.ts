/**
 * The base of relative paths. `npm run pi-rpcd` runs in the checkout and passes the caller's directory in `INIT_CWD`. A
 * process started by such a run has the variables too, unless they are removed from its environment.
 */
export function callersDirectory(env: NodeJS.ProcessEnv): string | undefined {
  return env["npm_lifecycle_event"] === "pi-rpcd" ? env["INIT_CWD"] : undefined;
}

/** Removes the variables that npm adds for the script it runs. npm's configuration stays. */
export function withoutScript(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const added = /^(?:INIT_CWD|npm_(?:lifecycle_.*|package_.*|command))$/;
  return Object.fromEntries(Object.entries(env).filter(([name]) => !added.test(name)));
}
