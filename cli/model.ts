import type { Client } from "../client/index.ts";
import { nearest } from "../protocol/configuration/nearest.ts";
import type { Result } from "../protocol/methods.ts";
import { howToLogin } from "./credentials.ts";
import { CommandError, missingArgument, UsageError } from "./errors.ts";
import { exitCodes } from "./exit-codes.ts";
import { shortCount } from "./format.ts";
import type { Invocation } from "./invocation.ts";
import type { Output } from "./output.ts";
import { findSession } from "./session-argument.ts";
import { oneLine, table } from "./text.ts";
import { withClient } from "./with-client.ts";

type ModelList = Result<"model/list">;
type Model = ModelList["models"][number];
type ModelName = Pick<Model, "provider" | "id">;

/** Shows or sets the model of a session, or lists the models. */
export async function model(invocation: Invocation<"model">): Promise<number> {
  const { output, signal } = invocation;
  const [action, word, wanted] = invocation.arguments;
  if (action !== "list" && word === undefined) throw new UsageError(missingArgument("SESSION"), "model");
  if (action === "set" && wanted === undefined) throw new UsageError("MODEL is missing.", "model");
  if (action !== "set" && wanted !== undefined) throw new UsageError(`${action} takes no MODEL.`, "model");
  return withClient(invocation, async (client) => {
    const session = word === undefined ? undefined : await findSession(client, word, signal);
    const current = await session?.get({ signal });
    if (action === "list") {
      const list = await client.call("model/list", { ...(session && { sessionId: session.id }) }, { signal });
      if (output.json) output.document(list);
      else for (const line of listLines(list, current?.model, output)) output.print(line);
    } else if (session !== undefined && action === "set") {
      const { provider, id } = await choose(client, session.id, wanted ?? "", signal);
      const set = await session.setModel(provider, id, { signal });
      if (output.json) output.document(set);
      else output.print(oneLine(`The next request goes to ${nameOf(set)}.`));
    } else {
      const { model: name, thinkingLevel } = current ?? {};
      if (output.json) output.document({ model: name ?? null, thinkingLevel: thinkingLevel ?? null });
      else output.print(oneLine(modelLine(name, thinkingLevel)));
    }
    return exitCodes.done;
  });

  async function choose(on: Client, sessionId: string, name: string, until: AbortSignal): Promise<ModelName> {
    const { models } = await on.call("model/list", { sessionId }, { signal: until });
    return chooseModel(models, name);
  }
}

/** Returns the models that a word may mean: those that it names exactly, or those whose names contain it. */
export function modelsLike(models: readonly ModelName[], word: string): readonly ModelName[] {
  const lower = word.toLowerCase();
  const comparisons: readonly ((one: ModelName) => boolean)[] = [
    (one) => nameOf(one) === word,
    ({ id }) => id === word,
    (one) => nameOf(one).toLowerCase().includes(lower),
  ];
  return comparisons.map((comparison) => models.filter(comparison)).find(({ length }) => length > 0) ?? [];
}

/** Returns the model that a word means. Throws `model_not_found`, `model_ambiguous`. */
export function chooseModel(models: readonly ModelName[], word: string): ModelName {
  const found = modelsLike(models, word);
  const [match] = found;
  if (match !== undefined && found.length === 1) return match;
  if (match !== undefined) {
    const names = found.map(nameOf);
    throw new CommandError("model_ambiguous", `"${word}" matches ${found.length} models:`, {
      data: { matching: names },
      lines: [...names.slice(0, 10), ...(names.length > 10 ? [`and ${names.length - 10} more`] : [])].map(oneLine),
    });
  }
  const near = nearest(
    word,
    models.flatMap((one) => [nameOf(one), one.id]),
    Math.ceil(word.length / 4),
  );
  const hint = near === undefined ? "" : ` Did you mean ${near}?`;
  throw new CommandError(
    "model_not_found",
    `pi has no model "${word}", or no login for it.${hint} \`pi-rpcd model list\` lists the models.`,
  );
}

function nameOf({ provider, id }: ModelName): string {
  return `${provider}/${id}`;
}

function modelLine(name: ModelName | undefined, thinkingLevel: string | undefined): string {
  if (name === undefined) return "No model. `pi-rpcd model list` lists the models that pi has credentials for.";
  return `${nameOf(name)}${thinkingLevel === undefined ? "" : `, thinking ${thinkingLevel}`}`;
}

const logins: Readonly<Record<string, string>> = {
  oauth: "logged in",
  api_key: "stored key",
  other: "key from the environment or models.json",
};

function listLines(
  { models, providers }: ModelList,
  current: ModelName | undefined,
  output: Pick<Output, "paint" | "columns">,
): readonly string[] {
  if (models.length === 0) return [`pi has no model with credentials. ${howToLogin}, or set a provider's key.`];
  const loginOf = new Map(providers.map(({ id, login }) => [id, logins[login] ?? login]));
  const rows = models.map((one) => {
    const isCurrent = current !== undefined && nameOf(one) === nameOf(current);
    const { contextWindow, reasoning } = one;
    const facts = [
      contextWindow === undefined ? "" : `${shortCount(contextWindow)} tokens`,
      reasoning === true ? "thinks" : "",
      isCurrent ? "current" : "",
    ];
    return [isCurrent ? "*" : " ", oneLine(nameOf(one)), facts.filter((fact) => fact !== "").join(", ")];
  });
  const lines = table(rows, output.columns);
  const byProvider = Map.groupBy(models.keys(), (index) => models[index]?.provider ?? "");
  return [...byProvider].flatMap(([provider, indexes]) => [
    output.paint(
      "bold",
      oneLine(`${provider} (${[`${indexes.length}`, loginOf.get(provider)].filter(Boolean).join(", ")})`),
    ),
    ...indexes.map((index) => `${lines[index] ?? ""}`),
  ]);
}
