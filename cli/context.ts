import { resolve } from "node:path";
import type { ContextOption } from "../protocol/context-option.ts";
import type { Params, Result } from "../protocol/methods.ts";
import { type ContextDaemon, openDaemon, sourceOf } from "./context-daemon.ts";
import { writeDocument } from "./context-file.ts";
import { showContext } from "./context-show.ts";
import { exportLines, importLines, inspectLines } from "./context-text.ts";
import { UsageError } from "./errors.ts";
import { exitCodes } from "./exit-codes.ts";
import type { Invocation } from "./invocation.ts";
import { wholeNumber } from "./values.ts";

type Context = Invocation<"context">;
type Options = Context["options"];
type Action = "inspect" | "export" | "import" | "show";

/** The actions that an option applies to; other options apply to all. */
const actionsOf: ReadonlyMap<keyof Options, readonly Action[]> = new Map([
  ...(["node", "until", "model", "max-tokens", "on-overflow", "tool-results"] as const).map(forDocuments),
  ...(["no-repair", "no-system", "no-events"] as const).map(forDocuments),
  ...(["cwd", "name", "ephemeral"] as const).map((option) => [option, ["import"]] as const),
  ...(["view", "include-system", "include-reasoning", "no-images", "output", "force"] as const).map(
    (option) => [option, ["export"]] as const,
  ),
  ["leaf", ["inspect", "export", "import"]],
]);

function forDocuments(option: keyof Options): readonly [keyof Options, readonly Action[]] {
  return [option, ["inspect", "import"]];
}

/** Inspects a context, creates a session from one, exports one, or shows a session's context. */
export async function context(invocation: Context): Promise<number> {
  const { options } = invocation;
  const [action = "inspect", word = ""] = invocation.arguments as readonly [Action?, string?];
  for (const [option, actions] of actionsOf) {
    if (options[option] === undefined || actions.includes(action)) continue;
    throw new UsageError(`--${option} only works with ${actions.join(" and ")}.`, "context");
  }
  if (action === "show") return await showContext(await openDaemon(invocation), word, invocation.output);
  const act = { inspect, export: exportContext, import: importContext }[action];
  const make = action === "export" ? undefined : contextOf(options);
  return await act(await openDaemon(invocation), { invocation, word, context: make ?? {} });
}

interface CommandInput {
  readonly invocation: Context;
  /** SOURCE. */
  readonly word: string;
  /** The options about the context. */
  readonly context: ContextOption;
}

async function inspect(daemon: ContextDaemon, { invocation, word, context }: CommandInput): Promise<number> {
  const { options, output } = invocation;
  const { model } = options;
  const source = await sourceOf(word, daemon);
  let found: Result<"context/inspect">;
  if (source.kind === "session") {
    const { sessionId } = source;
    const isAsked = [...actionsOf.keys()].some((option) => options[option] !== undefined);
    const option = { ...context, fromSession: fromSession(sessionId, options) };
    found = await daemon.call(
      "context/inspect",
      isAsked ? { context: option, ...(model !== undefined && { model }) } : { sessionId },
    );
  } else if (options.leaf !== undefined) {
    throw wrongLeaf();
  } else {
    found = await daemon.callWith(source, (where) => [
      "context/inspect",
      { context: { ...context, ...where }, ...(model !== undefined && { model }) },
    ]);
  }
  if (output.json) output.document(found);
  else for (const line of inspectLines(found, output.columns)) output.print(line);
  return exitCodes.done;
}

async function importContext(daemon: ContextDaemon, { invocation, word, context }: CommandInput): Promise<number> {
  const { options, output } = invocation;
  const { cwd, model, name, ephemeral, leaf } = options;
  const source = await sourceOf(word, daemon);
  if (leaf !== undefined && source.kind !== "session") {
    throw wrongLeaf();
  }
  const params: Omit<Params<"session/create">, "context"> = {
    cwd: resolve(cwd ?? "."),
    ...(model !== undefined && { model }),
    ...(name !== undefined && { name }),
    ...(ephemeral === true && { ephemeral }),
  };
  let made: Result<"session/create">;
  if (source.kind === "session") {
    const past = { ...context, fromSession: fromSession(source.sessionId, options) };
    made = await daemon.call("session/create", { ...params, context: past });
  } else {
    made = await daemon.callWith(source, (where) => [
      "session/create",
      { ...params, context: { ...context, ...where } },
    ]);
  }
  if (output.json) {
    output.document(made);
    return exitCodes.done;
  }
  output.print(made.sessionId);
  if (made.context !== undefined) for (const line of importLines(made.context)) output.aside(line);
  return exitCodes.done;
}

async function exportContext(daemon: ContextDaemon, { invocation, word }: CommandInput): Promise<number> {
  const { options, output, signal } = invocation;
  const source = await sourceOf(word, daemon);
  if (source.kind === "text")
    throw new UsageError("export cannot read a session file from stdin: name the file.", "context");
  const { leaf, view } = options;
  const params: Params<"context/export"> = {
    ...(source.kind === "session" ? { sessionId: source.sessionId } : { path: source.path }),
    ...(leaf !== undefined && { leafId: leaf }),
    ...(view !== undefined && { view }),
    ...(options["include-system"] === true && { includeSystem: true }),
    ...(options["include-reasoning"] === true && { includeReasoning: true }),
    ...(options["no-images"] === true && { includeImages: false }),
  };
  const target = options.output === undefined ? undefined : resolve(options.output);
  const written = await writeDocument(() => daemon.export(params), {
    target,
    force: options.force === true,
    output,
    signal,
  });
  if (output.json) {
    if (target !== undefined) output.document({ path: target, ...written });
    return exitCodes.done;
  }
  if (target !== undefined) output.print(target);
  for (const line of exportLines(written.diagnostics)) output.aside(line);
  return exitCodes.done;
}

function fromSession(sessionId: string, { leaf }: Options): NonNullable<ContextOption["fromSession"]> {
  return { sessionId, ...(leaf !== undefined && { leafId: leaf }) };
}

function wrongLeaf(): UsageError {
  return new UsageError("--leaf only works with a session; use --node for a document.", "context");
}

function contextOf(options: Options): ContextOption {
  const { node, until, "max-tokens": maxTokens, "on-overflow": onOverflow, "tool-results": toolResults } = options;
  return {
    ...(node !== undefined && { nodeId: node }),
    ...(until !== undefined && { until }),
    ...(maxTokens !== undefined && { maxTokens: budget(maxTokens) }),
    ...(onOverflow !== undefined && { onOverflow }),
    ...(toolResults !== undefined && {
      toolResults: {
        maxChars: wholeNumber(
          toolResults,
          { option: "tool-results", command: "context" },
          { min: 200, max: 1_000_000 },
        ),
      },
    }),
    ...(options["no-repair"] === true && { repair: false }),
    ...(options["no-system"] === true && { systemNodes: "drop" }),
    ...(options["no-events"] === true && { events: "drop" }),
  };
}

function budget(text: string): number | "auto" | null {
  if (text === "auto") return text;
  if (text === "none") return null;
  return wholeNumber(text, { option: "max-tokens", command: "context" }, { min: 1, max: 999_999_999 });
}
