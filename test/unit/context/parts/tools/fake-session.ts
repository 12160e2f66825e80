import { addDynamicTools, keptTools } from "../../../../../context/parts/tools/dynamic-tools.ts";
import type { AnyToolDefinition, Exposure, Loadout, ToolResult } from "../../../../../context/parts/tools/pi-tools.ts";
import { emptyMemory, type Memory } from "../../../../../extension/memory.ts";
import type { OptimisationOptions } from "../../../../../protocol/optimisation/options.ts";
import { resolveOptimisation } from "../../../../../protocol/optimisation/resolve.ts";
import { unchecked } from "../../../../helpers/partial.ts";
import { fakeStatus } from "../../fake-host.ts";

type Handler = (event: unknown, ctx: unknown) => unknown;

interface Registered {
  readonly name: string;
  readonly definition: Partial<AnyToolDefinition>;
}

export interface FakeSessionOptions {
  /** Whether this pi supports exposures. */
  readonly isNew?: boolean;
  readonly tools?: readonly (
    | string
    | { readonly name: string; readonly exposure: Exposure; readonly active?: boolean }
  )[];
  readonly config?: OptimisationOptions["dynamicTools"];
  /** Tools that the session does not allow. */
  readonly excluded?: readonly string[];
  /** State that outlives the modules. */
  readonly memory?: Memory;
  readonly entries?: readonly { readonly customType: string; readonly data: unknown }[];
}

/** The part on a pi that is reduced to its list of tools, modelled on measurements. */
export class FakeSession {
  readonly #status = fakeStatus();
  readonly degraded = this.#status.reasons;
  readonly appended: { readonly customType: string; readonly data: unknown }[];
  readonly memory: Memory;
  /** How often the active tools were set. */
  sets = 0;
  config: NonNullable<OptimisationOptions["dynamicTools"]>;
  readonly #isNew: boolean;
  readonly #excluded: readonly string[];
  readonly #tools = new Map<string, Registered>();
  #active: string[] = [];
  readonly #handlers = new Map<string, Handler>();
  #resolved: { readonly of: unknown; readonly config: ReturnType<typeof resolveOptimisation> } | undefined;

  constructor({
    isNew = true,
    tools = numbered(30),
    config = {},
    excluded = [],
    entries = [],
    memory,
  }: FakeSessionOptions = {}) {
    this.#isNew = isNew;
    this.#excluded = excluded;
    this.config = { enabled: true, ...config };
    this.appended = [...entries];
    this.memory = memory ?? emptyMemory();
    for (const tool of ["read", "bash"]) this.register({ name: tool });
    for (const tool of tools) {
      if (typeof tool === "string") this.register({ name: tool });
      else {
        const { active, ...definition } = tool;
        this.register(definition);
        if (active === true && !this.#active.includes(tool.name)) this.#active.push(tool.name);
      }
    }
    this.#add();
  }

  get active(): readonly string[] {
    return this.#active;
  }

  /** What requests declare. */
  get declared(): readonly string[] {
    const getExposure = (name: string): Exposure => this.#tools.get(name)?.definition.exposure ?? "direct";
    const loadout: Loadout = { declared: this.#active.map((name) => ({ name })), getExposure };
    const hidden = this.#active.flatMap((name) => {
      const prepare = this.#isNew ? this.#tools.get(name)?.definition.prepareLoadout : undefined;
      return prepare?.(loadout)?.hiddenDeclarations ?? [];
    });
    return this.#active.filter((name) => !hidden.includes(name));
  }

  get names(): readonly string[] {
    return [...this.#tools.keys()];
  }

  definition(name: string): Partial<AnyToolDefinition> {
    return this.#tools.get(name)?.definition ?? {};
  }

  register(definition: Partial<AnyToolDefinition> & { readonly name: string }): void {
    if (this.#excluded.includes(definition.name)) return;
    const isActivated = (exposure: Exposure = "direct"): boolean =>
      !this.#isNew || exposure === "direct" || exposure === "model-only";
    const before = this.#tools.get(definition.name);
    const wasActivated = before !== undefined && isActivated(before.definition.exposure);
    this.#tools.set(definition.name, { name: definition.name, definition });
    const { exposure } = definition;
    if (this.#isNew && exposure === "hidden") this.#active = this.#active.filter((name) => name !== definition.name);
    else if (!wasActivated && isActivated(exposure) && !this.#active.includes(definition.name)) {
      this.#active.push(definition.name);
    }
  }

  setActive(names: readonly string[]): void {
    this.sets += 1;
    this.#active = names.filter((name) => this.#tools.has(name));
  }

  /** Sends an event to the part. */
  tell(event: string): void {
    this.#handlers.get(event)?.({}, this.ctx);
  }

  start(): this {
    this.tell("session");
    this.tell("before_agent_start");
    this.tell("agent_start");
    return this;
  }

  report(): { readonly savedTokens: number; readonly figures: Readonly<Record<string, unknown>> } {
    return unchecked(this.#status.report(unchecked(this.ctx)));
  }

  /** Calls one of the tools, and returns the text of its result or error. */
  async call(
    name: string,
    params: object,
    nested?: (id: string, args: unknown) => Partial<ToolResult> & { isError?: boolean },
  ): Promise<string> {
    const execute = this.#tools.get(name)?.definition.execute;
    if (execute === undefined) throw new Error(`There is no ${name}.`);
    const executeTool = async (id: string, args: unknown) => {
      const { isError = false, ...result } = nested?.(id, args) ?? {};
      return { isError, result: { content: [{ type: "text", text: `ran ${id}` }], ...result } };
    };
    const ctx = { ...this.ctx, ...(this.#isNew ? { executeTool } : {}) };
    try {
      const { content } = await execute("call", unchecked(params), undefined, undefined, unchecked(ctx));
      return content.map((block) => (block.type === "text" ? block.text : "image")).join("\n");
    } catch (thrown) {
      return `! ${(thrown as Error).message}`;
    }
  }

  readonly ctx = {
    cwd: "/nonexistent",
    isIdle: () => true,
    model: { cost: { input: 3, cacheRead: 0.3 } },
    sessionManager: {
      getSessionId: () => "s1",
      getEntries: () => [
        { type: "message", message: { role: "assistant" } },
        ...this.appended.map((entry) => ({ type: "custom", ...entry })),
      ],
    },
  };

  #add(): void {
    const pi = {
      registerTool: (definition: AnyToolDefinition) => this.register(definition),
      getAllTools: () =>
        [...this.#tools.values()].map(({ name, definition }) => ({
          name,
          description: `Does what ${name} does.`,
          parameters: { type: "object", properties: { text: { type: "string" } } },
          ...definition,
          ...(this.#isNew ? { exposure: definition.exposure ?? "direct" } : { exposure: undefined }),
        })),
      getActiveTools: () => [...this.#active],
      setActiveTools: (names: readonly string[]) => this.setActive(names),
      appendEntry: (customType: string, data: unknown) => this.appended.push({ customType, data }),
    };
    const session = {
      onSession: (begun: (ctx: unknown) => void) => this.#handlers.set("session", (_event, ctx) => begun(ctx)),
      on: (_part: string, event: string, handler: Handler) => this.#handlers.set(event, handler),
    };
    addDynamicTools(unchecked(session), {
      pi: unchecked(pi),
      config: () => {
        if (this.#resolved?.of !== this.config) {
          this.#resolved = {
            of: this.config,
            config: resolveOptimisation({ dynamicTools: { allowActivation: true, ...this.config } }),
          };
        }
        return this.#resolved.config.dynamicTools;
      },
      estimator: { text: (text) => Math.ceil(text.length / 4) },
      taken: keptTools(this.memory),
      status: this.#status,
      fault: (where, thrown) => void this.degraded.push(`${where}: ${String(thrown)}`),
    });
  }
}

export function numbered(count: number): string[] {
  return Array.from({ length: count }, (_, n) => `tool_${n}`);
}
