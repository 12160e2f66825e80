/**
 * Where relative paths begin. `npm run pi-rpcd` runs in the checkout's folder and leaves the caller's in `INIT_CWD`.
 * A process that such a one started has the variables too, unless they were taken out of its environment.
 */
export function callersDirectory(env: NodeJS.ProcessEnv): string | undefined {
  return env["npm_lifecycle_event"] === "pi-rpcd" ? env["INIT_CWD"] : undefined;
}

/** An environment without what npm adds for the script it runs. npm's configuration stays. */
export function withoutScript(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const added = /^(?:INIT_CWD|npm_(?:lifecycle_.*|package_.*|command))$/;
  return Object.fromEntries(Object.entries(env).filter(([name]) => !added.test(name)));
}
