import { hostname, userInfo } from "node:os";
import { setTimeout as pause } from "node:timers/promises";
import { stateDirectory } from "../client/discovery.ts";
import type { Result } from "../protocol/methods.ts";
import { callDaemon } from "./daemon-call.ts";
import { daemonState, whyNotRunning } from "./daemon-state.ts";
import { UsageError } from "./errors.ts";
import { exitCodes } from "./exit-codes.ts";
import type { Invocation } from "./invocation.ts";
import { hasDesktop, openInBrowser } from "./open-in-browser.ts";
import { port as portOf } from "./values.ts";
import { type AddressFile, writeAddressFile } from "./web-address.ts";
import { buildWeb } from "./web-build.ts";
import { ensured } from "./with-client.ts";

type Web = Invocation<"web">;
type Opened = Result<"web/open">;

/** A browser that has not used the code by then may be unable to read the file. */
const printAfterMs = 5_000;
const lookEveryMs = 250;

/** Opens the web console in the browser, prints its address, or closes it. */
export async function web(invocation: Web): Promise<number> {
  const { options, output, env, signal } = invocation;
  const port = checkOptions(options);
  if (options.close === true) return await close(invocation);
  if (port !== undefined) {
    output.note(
      "fixed_port",
      "A browser keeps settings and service workers for the port: other programs at this port share them with the console.",
    );
  }
  await buildWeb({ env, signal });
  const stateDir = await ensured(invocation);
  const open = (print: boolean): Promise<Opened> =>
    callDaemon(
      "web/open",
      {
        ...(options["read-only"] === true && { readOnly: true }),
        ...(options.payload === true && { payload: true }),
        ...(options.bash === true && { bash: true }),
        ...(port !== undefined && { port }),
        ...(print && { print }),
      },
      { stateDir, signal },
    );
  if (options.print !== true && !output.json && hasDesktop(env)) {
    const opened = await open(false);
    const file = fileOf(opened, invocation);
    try {
      if (file !== undefined && (await openInBrowser(file.path, env)))
        return await untilUsed(opened, invocation, stateDir);
    } finally {
      file?.remove();
    }
  }
  const opened = await open(true);
  const { url, port: listening, expiresAt } = opened;
  if (output.json) output.document({ url, port: listening, address: addressOf(opened), expiresAt });
  else printAddress(opened, invocation);
  return exitCodes.done;
}

/** Returns the port, if there is one. */
function checkOptions(options: Web["options"]): number | undefined {
  const others = (["print", "read-only", "payload", "bash", "web-port"] as const).find(
    (name) => options[name] !== undefined,
  );
  if (options.close === true && others !== undefined)
    throw new UsageError(`--${others} does not work with --close.`, "web");
  if (options["read-only"] === true && options.bash === true)
    throw new UsageError("--bash does not work with --read-only.", "web");
  const given = options["web-port"];
  const port = given === undefined ? 0 : portOf(given, { option: "web-port", command: "web" });
  return port === 0 ? undefined : port;
}

async function close({ options, output, env, signal }: Web): Promise<number> {
  const stateDir = stateDirectory(options["state-dir"], env);
  const found = await daemonState(stateDir, signal);
  const closed = found.kind === "running" && (await callDaemon("web/close", {}, { stateDir, signal })).wasOpen;
  if (output.json) output.document({ closed });
  else if (closed) output.print("The web console is closed; all browsers are signed out.");
  else if (found.kind === "running") output.print("The web console is not open.");
  else output.print(`${whyNotRunning(found, stateDir)} There is nothing to close.`);
  return exitCodes.done;
}

function addressOf({ url, code }: Opened): string {
  return `${url}#${code}`;
}

function fileOf(opened: Opened, { env, output }: Web): AddressFile | undefined {
  try {
    return writeAddressFile(addressOf(opened), env);
  } catch (error) {
    output.note("no_browser", `The browser cannot be opened: ${(error as Error).message}.`);
    return undefined;
  }
}

/** Waits until a browser has used the code. */
async function untilUsed(opened: Opened, invocation: Web, stateDir: string): Promise<number> {
  const { output, signal } = invocation;
  const printAt = Date.now() + printAfterMs;
  let isPrinted = false;
  while (Date.now() < opened.expiresAt) {
    const { tokens } = await callDaemon("token/list", {}, { stateDir, signal });
    if (tokens.some(({ name }) => name === opened.tokenName)) {
      output.print(`The web console is open at ${opened.url}`);
      return exitCodes.done;
    }
    if (!isPrinted && Date.now() >= printAt) {
      isPrinted = true;
      printAddress(opened, invocation);
    }
    await pause(lookEveryMs, undefined, { signal }).catch(() => signal.throwIfAborted());
  }
  output.aside("No browser has opened the address in time, and it is no longer valid. Run the command again.");
  return exitCodes.deadline;
}

/** Only the address goes to stdout. */
function printAddress(opened: Opened, { output }: Web): void {
  const { port, expiresAt } = opened;
  const until = new Date(expiresAt).toLocaleTimeString();
  output.aside(`Open this address in a browser. It works once, until ${until}:`);
  output.print(addressOf(opened));
  output.aside(`From another machine, first: ssh -L ${port}:127.0.0.1:${port} ${userName()}${hostname()}`);
}

function userName(): string {
  try {
    return `${userInfo().username}@`;
  } catch {
    return "";
  }
}
