import { WireError } from "../../protocol/errors.ts";
import type { ChildExit } from "../../protocol/session.ts";
import type { PiOptions } from "./spawn-options.ts";

/** pi prints this for an unknown model id, and continues with a model made up from it (measured on both versions). */
const madeUpModel = "Using custom model id";

/** Why pi ended during its start, from its exit and its output. */
export function startFailure(exit: ChildExit, options: PiOptions, helper: string): WireError {
  const words = lastLines(exit.stderrTail);
  const details = { exit, piStderr: exit.stderrTail };
  // pi names the extension that it could not load, and ends.
  if (exit.code === 1 && exit.stderrTail.includes(helper)) return helperMissing(exit.stderrTail);
  if (
    options.model !== undefined &&
    /^Error: .*\b(?:[Mm]odel|provider)\b.*(?:not found|[Uu]nknown)/m.test(exit.stderrTail)
  ) {
    // An option of pi's own command line.
    const output = words.replace("Use --list-models to see available models.", "model/list lists the models.");
    const message = `pi does not know the model "${options.model}". Its output: ${output}`;
    return new WireError("model_not_found", message, details);
  }
  const how = exit.signal === null ? `with code ${exit.code}` : `by ${exit.signal}`;
  return new WireError(
    "start_failed",
    `pi ended ${how} while it started.${words === "" ? "" : ` Its output: ${words}`}`,
    details,
  );
}

/** Why the system could not start pi. */
export function spawnFailure(cause: NodeJS.ErrnoException, path: string): WireError {
  const advice: Readonly<Record<string, string>> = {
    ENOENT: "Check that the file and its interpreter exist.",
    EACCES: "Check that it is executable.",
  };
  const code = cause.code ?? "unknown";
  return new WireError(
    "start_failed",
    `Cannot start ${path} (${code}). ${advice[code] ?? ""}`.trim(),
    { code },
    { cause },
  );
}

export function startupDialog(question: string): WireError {
  const title = question.slice(0, 200);
  return new WireError(
    "startup_dialog",
    `An extension opened the dialog "${title}" while pi was starting. pi does not read answers at that time, so it would wait forever. Give the dialog a timeout, or open it later.`,
    { title },
  );
}

export function helperMissing(stderrTail: string): WireError {
  const words = lastLines(stderrTail);
  return new WireError(
    "link_failed",
    `pi started, but the helper extension did not load.${words === "" ? "" : ` Output of pi: ${words}`}`,
    { stderrTail, piStderr: stderrTail },
  );
}

/** Whether pi made up a model from an unknown id. */
export function modelIsMadeUp(stderrTail: string): boolean {
  return stderrTail.includes(madeUpModel);
}

function lastLines(text: string): string {
  return text.trim().split("\n").slice(-6).join("\n").slice(-1_000);
}
