import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
import { isRecord } from "../../../protocol/objects.ts";
import { COMPRESS_TOOL } from "../../../protocol/pruning/config.ts";
import { isOurs, reachableTools, searchable } from "./catalogue.ts";
import { ParamsCheck } from "./params-check.ts";
import { hasExposures, type PiTool, type ToolContext, type ToolResult } from "./pi-tools.ts";
import type { Synonyms } from "./synonyms.ts";
import { ToolIndex } from "./tool-index.ts";

/** Text for the prompt, because pi lists no tool whose declaration is hidden. */
export const hiddenNote =
  "Use search_tools to find tools that are not declared, describe_tools for their schemas, and execute_tool to run them";

/** Maximum params of a call, in characters of JSON. */
const maxParamsCharacters = 256 * 1_024;
const maxSchemaCharacters = 16 * 1_024;
const maxDescriptionCharacters = 8 * 1_024;
const maxLineCharacters = 160;
const maxGroups = 24;
const maxQueryCharacters = 2_000;
const maxDescribed = 8;
const found = { usual: 8, most: 20 } as const;

export interface ToolSearchOptions {
  readonly pi: Pick<ExtensionAPI, "getAllTools" | "getActiveTools">;
  readonly synonyms: () => Synonyms;
  /** The deactivated tools. */
  readonly taken: () => ReadonlySet<string>;
  /** Whether the model sees a tool's declaration. */
  readonly isDeclared: (tool: PiTool) => boolean;
  /** Activates a tool for the model if allowed now. Only in older versions of pi. */
  readonly activate: (name: string) => Activation;
  /** Called with tools that the model has asked about. */
  readonly described: (names: readonly string[]) => void;
}

/**
 * `now`: with the next request. `later`: after this run, because the set has already changed in it. `never`: not allowed.
 */
export type Activation = "now" | "later" | "never";

interface Call {
  readonly signal: AbortSignal | undefined;
  readonly onUpdate: ((partial: never) => void) | undefined;
  readonly ctx: ToolContext;
}

/** Implements search_tools, describe_tools and execute_tool. Failures are texts for the model. */
export class ToolSearch {
  readonly #options: ToolSearchOptions;
  readonly #check = new ParamsCheck();

  constructor(options: ToolSearchOptions) {
    this.#options = options;
  }

  async search(query: string, limit: number = found.usual): Promise<ToolResult> {
    const { synonyms, isDeclared } = this.#options;
    const most = Math.min(found.most, Math.max(1, Math.trunc(limit) || found.usual));
    const tools = this.#tools().filter((tool) => !isDeclared(tool));
    const index = new ToolIndex(tools.map(searchable), synonyms());
    const names = index.search(query.slice(0, maxQueryCharacters), most);
    if (names.length === 0) return text(`No tool fits. ${groupsOf(tools)}`, { found: names });
    const byName = new Map(tools.map((tool) => [tool.name, tool]));
    const lines = names.map((name) => {
      const { description, parameters } = byName.get(name) ?? {};
      return `- ${name}(${signatureOf(parameters)}): ${firstLine(description)}`;
    });
    return text(`${lines.join("\n")}\n\n${names.length} of ${tools.length} tools that are not declared.`, {
      found: names,
    });
  }

  async describe(given: readonly string[]): Promise<ToolResult> {
    const tools = this.#tools();
    const ids = given.slice(0, maxDescribed);
    const known = ids.flatMap((name) => tools.filter((tool) => tool.name === name));
    this.#options.described(known.map(({ name }) => name));
    const texts = ids.map((name) => {
      const tool = known.find((one) => one.name === name);
      return tool === undefined ? this.#unknown(name, tools) : described(tool);
    });
    if (given.length > ids.length) texts.push(`Only ${maxDescribed} are described at a time.`);
    return text(texts.join("\n\n"), { described: known.map(({ name }) => name) });
  }

  /** Throws the tool's error, or the reason why it was not run. */
  async execute(
    { id, params }: { readonly id: string; readonly params: Readonly<Record<string, unknown>> },
    { signal, onUpdate, ctx }: Call,
  ): Promise<ToolResult> {
    // Blocks are read from the result of the original call of compress.
    if (isOurs(id) || id === COMPRESS_TOOL) throw new Error(`execute_tool does not run ${id}: call it by its name.`);
    const tools = this.#tools();
    const tool = tools.find(({ name }) => name === id);
    if (tool === undefined) throw new Error(this.#unknown(id, tools));
    const size = JSON.stringify(params).length;
    if (size > maxParamsCharacters) {
      throw new Error(`The params have ${size} characters; at most ${maxParamsCharacters} are taken.`);
    }
    const verdict = await this.#check.check(tool.parameters, params);
    if ("findings" in verdict && verdict.findings.length > 0) {
      throw new Error(`${id} was not run: its params are not by its schema.\n- ${verdict.findings.join("\n- ")}`);
    }
    signal?.throwIfAborted();
    if (typeof ctx.executeTool !== "function" || !hasExposures([tool])) return this.#activated(tool);
    if (ctx.tools?.some(({ name }) => name === id) === false) {
      throw new Error(
        `${id} cannot be run by another tool${this.#options.isDeclared(tool) ? ": call it by its name." : "."}`,
      );
    }
    const { result, isError } = await ctx.executeTool(id, params, {
      ...(signal === undefined ? {} : { signal }),
      ...(onUpdate === undefined ? {} : { onUpdate: (partial) => onUpdate(partial as never) }),
    });
    if (isError) throw new Error(textsOf(result) || `${id} failed.`);
    // The event of the nested call has the tool's details.
    const { content, terminate } = result;
    return { content, details: { tool: id }, ...(terminate === undefined ? {} : { terminate }) };
  }

  #activated(tool: PiTool): ToolResult {
    const { name } = tool;
    if (this.#options.isDeclared(tool)) throw new Error(`${name} is declared to you: call it by its name.`);
    switch (this.#options.activate(name)) {
      case "now":
        return text(`${name} was not run. It is declared to you from now on: call it by its name, with these params.`, {
          activated: name,
        });
      case "later":
        throw new Error(
          `${name} was not run. The declared tools change at most once in a run, and have changed in this one: ${name} is declared to you from the user's next message on.`,
        );
      case "never":
        throw new Error(`${name} was not run: it cannot be run by another tool here, and may not be activated.`);
    }
  }

  #tools(): readonly PiTool[] {
    return reachableTools(this.#options.pi, this.#options.taken());
  }

  #unknown(name: string, tools: readonly PiTool[]): string {
    const nearest = nearestNames(
      name,
      tools.map((tool) => tool.name),
    );
    const hint = nearest.length === 0 ? "" : ` The nearest are ${nearest.join(", ")}.`;
    return `There is no tool "${name.slice(0, 64)}".${hint} search_tools finds tools by what they do.`;
  }
}

function described({ name, description, parameters, promptGuidelines = [] }: PiTool): string {
  const schema = JSON.stringify(parameters ?? {});
  const shown =
    schema.length <= maxSchemaCharacters
      ? schema
      : `too large to be shown (${schema.length} characters): execute_tool says what is wrong with params`;
  const rules = promptGuidelines.length === 0 ? [] : [`Rules: ${cut(promptGuidelines.join(" "), 2_000)}`];
  const body = cut(String(description ?? ""), maxDescriptionCharacters);
  return [`## ${name}`, body, ...rules, `Parameters: ${shown}`].join("\n");
}

/** Lists tools by the beginnings of their names. */
function groupsOf(tools: readonly PiTool[]): string {
  if (tools.length === 0) return "All tools of this session are declared.";
  const counts = new Map<string, number>();
  for (const { name } of tools) {
    const group = /^mcp__(.+?)__/.exec(name)?.[1] ?? name.split(/[_.:-]/)[0] ?? name;
    counts.set(group, (counts.get(group) ?? 0) + 1);
  }
  const largest = [...counts].sort(([one, n], [other, m]) => m - n || (one < other ? -1 : 1)).slice(0, maxGroups);
  const named = largest.map(([group, count]) => `${group.slice(0, 32)} (${count})`).join(", ");
  return `Try other words: there are ${tools.length} tools that are not declared, among them ${named}.`;
}

/** Parameter names, optional ones with `?`; often enough for a call. */
function signatureOf(parameters: unknown): string {
  if (!isRecord(parameters) || !isRecord(parameters["properties"])) return "";
  const required = Array.isArray(parameters["required"]) ? parameters["required"] : [];
  const names = Object.entries(parameters["properties"]).map(([name, schema]) => {
    const type =
      isRecord(schema) && typeof schema["type"] === "string" && schema["type"] !== "string"
        ? `: ${schema["type"]}`
        : "";
    return `${name}${required.includes(name) ? "" : "?"}${type}`;
  });
  return cut(names.join(", "), maxLineCharacters);
}

function firstLine(description: unknown): string {
  return cut(
    String(description ?? "")
      .trim()
      .split(/\r?\n/, 1)[0] ?? "",
    maxLineCharacters,
  );
}

function cut(given: string, characters: number): string {
  return given.length <= characters ? given : `${given.slice(0, characters).toWellFormed()}…`;
}

function textsOf({ content }: ToolResult): string {
  return content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n");
}

function text(said: string, details: Readonly<Record<string, unknown>>): ToolResult {
  return { content: [{ type: "text", text: said }], details };
}

const maxLength = 128;

/** Returns the most similar names, nearest first. */
export function nearestNames(name: string, names: readonly string[], count = 3): string[] {
  const wanted = name.slice(0, maxLength).toLowerCase();
  const scored = names.map((other) => ({ other, away: distance(wanted, other.slice(0, maxLength).toLowerCase()) }));
  return scored
    .sort((one, next) => one.away - next.away || (one.other < next.other ? -1 : 1))
    .slice(0, count)
    .map(({ other }) => other);
}

/** Edit distance as a share of the longer name; smaller if one name contains the other. */
function distance(one: string, other: string): number {
  const longer = Math.max(one.length, other.length, 1);
  const isPart = one.length > 2 && (other.includes(one) || one.includes(other));
  let row = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (let i = 1; i <= one.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= other.length; j += 1) {
      const changed = (row[j - 1] ?? 0) + Number(one[i - 1] !== other[j - 1]);
      next.push(Math.min(changed, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return ((row[other.length] ?? longer) / longer) * (isPart ? 0.5 : 1);
}
