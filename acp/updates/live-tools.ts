import type { SessionUpdate, ToolCall, ToolCallUpdate } from "@agentclientprotocol/sdk";
import { DisplayTerminal } from "./display-terminal.ts";
import { Pace } from "./pace.ts";
import { partialJson } from "./partial-json.ts";
import type { ToolPlace } from "./paths.ts";
import { rawValue } from "./raw-value.ts";
import { type Told, ToolCallIds } from "./told.ts";
import { resultFields, runningContent, type ToolResult } from "./tool-results.ts";
import { type CalledTool, describeTool, isShell } from "./tools.ts";

export interface LiveToolsOptions {
  readonly place: ToolPlace;
  /** Whether the client shows terminals by `terminal_output` in `_meta`. */
  readonly terminals: boolean;
  readonly told: Told | undefined;
  /** The place of an answer that was told from its entry among these. */
  readonly orderOf: (answerId: string) => number;
  readonly send: (update: SessionUpdate) => void;
}

interface OpenTool {
  readonly toolCallId: string;
  name: string;
  /** Undefined: they are not complete yet. */
  args: { readonly value: unknown } | undefined;
  /** The beginning of the arguments' JSON, while they stream. */
  argsText: string;
  isRunning: boolean;
  formerText: string | null | undefined;
  /** The answer that calls it, by its number. */
  readonly answer: number;
  /** The answer's place among those that were told from their entries, if it is one. */
  toldOrder: number | undefined;
  readonly pace: Pace;
  readonly terminal: DisplayTerminal | undefined;
}

const intervalMs = 250;
/** Only so much of streaming arguments is shown. The complete arguments follow. */
const maxArgsChars = 16 * 1024;

/** The tool calls of a session that have not ended. */
export class LiveTools {
  readonly #options: LiveToolsOptions;
  readonly #ids: ToolCallIds;
  readonly #open = new Map<string, OpenTool>();
  readonly #ended: Set<string>;
  /**
   * Calls of the newest answer that failed with their run. Their results can come after that: from the file of a pi that
   * was killed, or from a run that the daemon did not know when it was asked.
   */
  readonly #abandoned = new Map<string, OpenTool>();
  #answer = 0;
  /** The same of the answer whose events come now. */
  #toldOrder: number | undefined;

  constructor(options: LiveToolsOptions) {
    const { told } = options;
    this.#options = options;
    this.#ids = told?.ids ?? new ToolCallIds();
    this.#ended = new Set(told?.endedTools);
    for (const [id, { toolCallId, name, args, answerId, hasFailed }] of told?.openTools ?? []) {
      const toldOrder = options.orderOf(answerId);
      const fields = { args: { value: args }, terminal: undefined, toldOrder };
      const tools = hasFailed ? this.#abandoned : this.#open;
      tools.set(id, this.#tool(toolCallId, name, fields));
    }
  }

  /** Another answer begins: its tool calls can have ids of earlier ones. `toldId`: its id, if its entry has told it. */
  nextAnswer(toldId?: string): void {
    this.#answer++;
    this.#toldOrder = toldId === undefined ? undefined : this.#options.orderOf(toldId);
    if (toldId === undefined) this.#abandoned.clear();
  }

  /** The newest answer was told from its entry: events of earlier ones that come again are not of its calls. */
  retold(answerId: string): void {
    const toldOrder = this.#options.orderOf(answerId);
    for (const tool of this.#open.values()) if (tool.answer === this.#answer) tool.toldOrder = toldOrder;
  }

  /** The model begins a tool call. */
  started(id: string, name: string): void {
    const abandoned = this.#abandoned.get(id);
    if (abandoned?.answer === this.#answer) this.#goOn(id, abandoned);
    const earlier = this.#open.get(id);
    if (earlier?.answer === this.#answer) return;
    if (earlier !== undefined) this.#fail(id, earlier);
    this.#add(id, name);
  }

  argumentsDelta(id: string, delta: string): void {
    const tool = this.#open.get(id);
    if (tool === undefined || tool.args !== undefined || tool.argsText.length >= maxArgsChars) return;
    tool.argsText = (tool.argsText + delta).slice(0, maxArgsChars);
    tool.pace.request(() => this.#update(tool, this.#described(tool.name, partialJson(tool.argsText))));
  }

  /** The tool call is complete. */
  called(id: string, name: string, args: unknown): void {
    this.started(id, name);
    const tool = this.#open.get(id);
    if (tool === undefined || tool.args !== undefined) return;
    tool.pace.cancel();
    tool.name = name;
    tool.args = { value: args };
    this.#update(tool, this.#described(name, args));
  }

  executing(id: string, name: string, args: unknown): void {
    const tool = this.#known(id, name);
    if (tool === undefined || tool.isRunning) return;
    tool.pace.cancel();
    tool.isRunning = true;
    const described = tool.args === undefined ? this.#described(name, args) : {};
    tool.args ??= { value: args };
    this.#update(tool, { ...described, status: "in_progress" });
  }

  /** `content`: the latest state of its output. */
  progress(id: string, name: string, content: unknown): void {
    const tool = this.#known(id, name);
    if (tool === undefined) return;
    tool.pace.request(() => {
      const { terminal } = tool;
      const shown = terminal === undefined ? runningContent(tool.name, content) : [];
      if (shown.length > 0) this.#update(tool, { content: shown });
      const _meta = terminal?.output(content);
      if (_meta !== undefined) this.#update(tool, { _meta });
    });
  }

  ended(id: string, name: string, result: ToolResult): void {
    const abandoned = this.#abandoned.get(id);
    if (abandoned !== undefined && !this.#isLater(abandoned)) this.#goOn(id, abandoned);
    const tool = this.#known(id, name);
    if (tool === undefined) return;
    const called: CalledTool = { name: tool.name, args: tool.args?.value };
    const { place } = this.#options;
    const fields = resultFields(called, result, { place, formerText: tool.formerText });
    const exit = tool.terminal?.exit(fields._meta) ?? fields._meta;
    this.#end(id, tool, { ...fields, ...(exit && { _meta: exit }) });
  }

  /** Says which text a running `write` replaces; `null`: the file does not exist yet. */
  formerText(id: string, text: string | null): void {
    const tool = this.#open.get(id);
    if (tool !== undefined) tool.formerText = text;
  }

  /** The run has ended: tool calls without an end never get one. `isPast`: it ended before what a replay has told. */
  failAll(isPast = false): void {
    for (const [id, tool] of this.#open) {
      const isOfLaterRun = this.#isLater(tool) || (isPast && tool.toldOrder !== undefined);
      if (isOfLaterRun) continue;
      this.#fail(id, tool);
      if (tool.answer === this.#answer) this.#abandoned.set(id, { ...tool, terminal: undefined });
    }
  }

  /** The client's id of the tool call that runs, if it is the only one. */
  get running(): string | undefined {
    const [first, second] = [...this.#open.values()].filter(({ isRunning }) => isRunning);
    return second === undefined ? first?.toolCallId : undefined;
  }

  retell(toolCallId: string): void {
    const tool = [...this.#open.values()].find((open) => open.toolCallId === toolCallId && open.isRunning);
    if (tool === undefined) return;
    const { title } = describeTool({ name: tool.name, args: tool.args?.value }, this.#options.place);
    this.#update(tool, { title, content: tool.terminal?.start().content ?? [] });
  }

  get runningCount(): number {
    let count = 0;
    for (const { isRunning } of this.#open.values()) if (isRunning) count++;
    return count;
  }

  close(): void {
    for (const { pace } of this.#open.values()) pace.cancel();
  }

  /** The open tool call of this id. One whose start was lost begins here. Undefined: it has ended. */
  #known(id: string, name: string): OpenTool | undefined {
    const tool = this.#open.get(id);
    if (tool === undefined) return this.#ended.has(id) ? undefined : this.#add(id, name);
    return this.#isLater(tool) ? undefined : tool;
  }

  /** Whether its entry has told it, and the events come from before it. */
  #isLater({ toldOrder }: OpenTool): boolean {
    return toldOrder !== undefined && this.#toldOrder !== undefined && toldOrder > this.#toldOrder;
  }

  #add(id: string, name: string): OpenTool {
    const { place, terminals } = this.#options;
    const toolCallId = this.#ids.next(id);
    const terminal = terminals && isShell(name) ? new DisplayTerminal(toolCallId, place.cwd) : undefined;
    const tool = this.#tool(toolCallId, name, { args: undefined, terminal, toldOrder: undefined });
    this.#ended.delete(id);
    this.#open.set(id, tool);
    const { title, kind } = describeTool({ name, args: undefined }, place);
    const call: ToolCall = { toolCallId, name, title, kind, status: "pending", ...terminal?.start() };
    this.#options.send({ sessionUpdate: "tool_call", ...call });
    return tool;
  }

  #tool(toolCallId: string, name: string, fields: Pick<OpenTool, "args" | "terminal" | "toldOrder">): OpenTool {
    const start = { argsText: "", isRunning: false, formerText: undefined, pace: new Pace(intervalMs) };
    return { toolCallId, name, answer: this.#answer, ...start, ...fields };
  }

  #fail(id: string, tool: OpenTool): void {
    const exit = tool.terminal?.exit(undefined);
    this.#end(id, tool, { status: "failed", ...(exit && { content: [], _meta: exit }) });
  }

  #goOn(id: string, abandoned: OpenTool): void {
    this.#abandoned.delete(id);
    this.#ended.delete(id);
    this.#open.set(id, abandoned);
  }

  #end(id: string, tool: OpenTool, fields: Omit<ToolCallUpdate, "toolCallId">): void {
    tool.pace.cancel();
    this.#open.delete(id);
    this.#ended.add(id);
    this.#update(tool, fields);
  }

  #described(name: string, args: unknown): Omit<ToolCallUpdate, "toolCallId"> {
    const rawInput = rawValue(args);
    return { ...describeTool({ name, args }, this.#options.place), ...(rawInput !== undefined && { rawInput }) };
  }

  #update({ toolCallId }: OpenTool, fields: Omit<ToolCallUpdate, "toolCallId">): void {
    this.#options.send({ sessionUpdate: "tool_call_update", toolCallId, ...fields });
  }
}
