import { join } from "node:path";
import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
import type { OptimisationOptions } from "../../protocol/optimisation/options.ts";
import type { LogEntry } from "../../provider/log.ts";
import { answer, call, type Reply } from "../../provider/reply.ts";
import type { CatalogueTool } from "../../test/fixtures/tool-catalogue.ts";
import { toolCatalogue } from "../../test/fixtures/tool-catalogue.ts";
import { toolTasks } from "../../test/fixtures/tool-tasks.ts";
import { startDaemonUnderTest } from "../lib/daemon-under-test.ts";
import type { Figure, Measured, Resources, Setting } from "../lib/figure.ts";
import { RawClient } from "../lib/raw-client.ts";
import { type RealPi, realPis, scriptModel } from "../lib/real-pi.ts";

const extension = join(import.meta.dirname, "..", "..", "test", "fixtures", "extension", "many-tools.ts");
/** Every twelfth: ten tasks, each with its own prompt. */
const tasks = toolTasks.filter((_, at) => at % 12 === 0);

interface Mode {
  readonly name: string;
  /** The exposure of the hundred tools, if this pi supports it. */
  readonly exposure?: string;
  readonly optimisation?: OptimisationOptions;
}

const modes: readonly Mode[] = [
  { name: "all tools" },
  { name: "native search", exposure: "deferred", optimisation: { dynamicTools: { enabled: true } } },
  { name: "three", optimisation: { dynamicTools: { enabled: true, mode: "three" } } },
];

interface Sent {
  readonly declared: number;
  readonly toolTokens: number;
  readonly tokens: number;
  readonly block: string;
}

/** The tokens of a hundred tools in each request, compared with searching for them. */
export const dynamicTools: Figure = {
  title:
    "A hundred tools: tokens of each request with all of them, with pi's own search, and with three that find them",
  repetitions: 1,
  measure: async (setting, resources): Promise<Measured> => {
    const rows: (string | number)[][] = [];
    for (const pi of realPis()) {
      let all: { tools: number; sent: number } | undefined;
      for (const mode of modes) {
        // Older versions have no search: the part uses its three tools there.
        if (mode.exposure !== undefined && pi.version === "0.87.1") continue;
        const requests = await requestsOf(pi, mode, setting, resources);
        const sum = (of: (one: Sent) => number): number => requests.reduce((total, one) => total + of(one), 0);
        const tools = sum(({ toolTokens }) => toolTokens) / requests.length;
        const sent = sum(({ tokens }) => tokens);
        all ??= { tools, sent };
        const changes = requests.filter(({ block }, at) => at > 0 && block !== requests[at - 1]?.block).length;
        const declared = Math.max(...requests.map((one) => one.declared));
        rows.push([
          ...[pi.version, mode.name, requests[0]?.declared ?? 0, declared, Math.round(tools), share(tools, all.tools)],
          ...[requests.length / tasks.length, sent, share(sent, all.sent), changes],
        ]);
      }
    }
    const columns = [
      "pi",
      "mode",
      "declared first",
      "at most",
      "tool tokens",
      "x",
      "requests/task",
      "tokens sent",
      "x",
      "changes",
    ];
    return {
      rows: [],
      tables: [{ title: `${tasks.length} tasks, one prompt each, over OpenAI's chat completions`, columns, rows }],
      notes: [
        "tokens by o200k_base of the requests as they went out; tool tokens: of the tool block, mean of all requests",
        "requests/task: the scripted model searches with the task's own words, then calls; the result describes the params",
        "changes: how often the tool block differed from the previous request's; each change loses the provider's cache",
        "how often a real model finds its tools is not measured",
      ],
    };
  },
};

async function requestsOf(pi: RealPi, mode: Mode, setting: Setting, resources: Resources): Promise<readonly Sent[]> {
  const sent: Sent[] = [];
  const otherwise = (request: LogEntry): Reply | string => {
    const block = JSON.stringify(request.body["tools"] ?? []);
    const tokens = countTokens(JSON.stringify(request.body["messages"] ?? []));
    const toolTokens = countTokens(block);
    sent.push({ declared: request.toolNames.length, toolTokens, tokens: tokens + toolTokens, block });
    return next(request);
  };
  const { env } = await scriptModel(setting, resources, { otherwise, maxLogEntries: 8 });
  const exposure: Readonly<Record<string, string>> =
    mode.exposure === undefined ? {} : { MANY_TOOLS_EXPOSURE: mode.exposure };
  const daemon = await startDaemonUnderTest(setting, resources, { pi: pi.path, env: { ...env, ...exposure } });
  const client = await RawClient.open(daemon, "unix", resources);
  const { sessionId } = await client.request("session/create", {
    ...{ cwd: setting.directory, model: "scripted/model-1", extensions: [extension] },
    ...(mode.optimisation === undefined ? {} : { optimisation: mode.optimisation }),
  });
  for (const [task] of tasks) {
    await client.request("session/prompt", { sessionId, text: task });
    await client.request("session/waitForIdle", { sessionId });
  }
  await client.request("session/close", { sessionId });
  return sent;
}

/** The next step of a model that knows which tool it needs. */
function next({ messages, toolNames }: LogEntry): Reply | string {
  const lastUser = messages.findLastIndex(({ role }) => role === "user");
  const task = messages[lastUser]?.texts.join("\n") ?? "";
  const done = messages.slice(lastUser).flatMap(({ toolCalls }) => toolCalls);
  const wanted = toolTasks.find(([one]) => one === task)?.[1] ?? "";
  const tool = toolCatalogue.find(({ name }) => name === wanted);
  if (tool === undefined) throw new Error(`Unknown task "${task}".`);
  const has = (name: string): boolean => done.some((one) => one.name === name);
  if (has(wanted)) return "It is done.";
  if (toolNames.includes(wanted)) return answer(call(wanted, paramsOf(tool)));
  const search = ["tool_search", "search_tools"].find((name) => toolNames.includes(name));
  if (search === undefined) throw new Error(`${wanted} cannot be reached.`);
  if (!has(search)) return answer(call(search, { query: task }));
  if (!has("execute_tool")) return answer(call("execute_tool", { id: wanted, params: paramsOf(tool) }));
  return "It is done.";
}

function paramsOf({ parameters }: CatalogueTool): Readonly<Record<string, string>> {
  return Object.fromEntries(parameters.required.map((name) => [name, "a value"]));
}

function share(value: number, whole: number): number {
  return Number((value / whole).toFixed(3));
}
