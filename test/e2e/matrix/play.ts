import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { SessionHandle } from "../../../client/index.ts";
import { Gate } from "../../../provider/gate.ts";
import type { LogEntry } from "../../../provider/log.ts";
import { answer, behind, call, gatesOf, hold, type Reply, status } from "../../../provider/reply.ts";
import { type Stage, type StageOptions, startStage } from "../../helpers/stage.ts";
import type { AgentState } from "./cells.ts";

/** What one cell wants of the provider, for the requests of its session. */
interface Script {
  readonly pushed: string;
  readonly carrying: Reply[];
  readonly others: Reply[];
}

/** A stage whose provider answers each session by that session's own script, so that cells can be played at once. */
export interface MatrixStage extends AsyncDisposable {
  readonly stage: Stage;
  readonly scripts: Map<string, Script>;
}

const tag = /cell-[\w-]+-end/;

export async function startMatrix(agent: StageOptions["agent"] = {}): Promise<MatrixStage> {
  const scripts = new Map<string, Script>();
  const reply = (request: LogEntry): Reply | string => {
    const script = scripts.get(tag.exec(JSON.stringify(request.body))?.[0] ?? "");
    if (script === undefined) return "A request of no cell.";
    return (carries(request, script.pushed) ? script.carrying : script.others).shift() ?? "Done.";
  };
  const stage = await startStage({ provider: { otherwise: reply }, agent });
  return { stage, scripts, [Symbol.asyncDispose]: () => stage[Symbol.asyncDispose]() };
}

/** Whether the push is one of the request's messages; a summary of a compaction holds its text somewhere in its own. */
function carries({ messages }: LogEntry, pushed: string): boolean {
  return messages.some(({ role, texts }) => role === "user" && texts.some((text) => text.trim() === pushed));
}

/** One session of a cell. */
export class Cell {
  readonly session: SessionHandle;
  /** The text of the push. */
  readonly pushed: string;
  readonly #matrix: MatrixStage;
  readonly #script: Script;
  readonly #name: string;

  private constructor(matrix: MatrixStage, session: SessionHandle, name: string) {
    this.#matrix = matrix;
    this.session = session;
    this.#name = name;
    this.pushed = `The pushed text of ${name}.`;
    this.#script = { pushed: this.pushed, carrying: [], others: [] };
    matrix.scripts.set(name, this.#script);
  }

  /** `title`: what is unique to the cell. */
  static async open(matrix: MatrixStage, title: string, api: "scripted" | "scripted-anthropic"): Promise<Cell> {
    const name = `cell-${title.replaceAll(/\W+/g, "-")}-end`;
    return new Cell(matrix, await matrix.stage.session(api), name);
  }

  /** What the requests that carry the push are answered with, in order. */
  answerPush(replies: readonly Reply[]): void {
    this.#script.carrying.push(...replies);
  }

  prompt(text: string): Promise<unknown> {
    return this.session.runUntilSettled(`${text} ${this.#name}`);
  }

  /** Gives the session a past that can be compacted. */
  async tellStories(): Promise<void> {
    for (const word of ["One", "Two"]) await this.prompt(`${word}: ${"a long story. ".repeat(60)}`);
  }

  /** The requests of the session, of all kinds. */
  get requests(): readonly LogEntry[] {
    return this.#matrix.stage.provider.requests.filter(({ body }) => JSON.stringify(body).includes(this.#name));
  }

  get carrying(): readonly LogEntry[] {
    return this.requests.filter((request) => carries(request, this.pushed));
  }

  /** How many entries of the session's file are the push's. */
  async entries(deliveryId: string): Promise<number> {
    const { file } = await this.session.get();
    const lines = existsSync(file) ? readFileSync(file, "utf8").split("\n") : [];
    return lines.filter((line) => line.includes('"custom_message"') && line.includes(`"${deliveryId}"`)).length;
  }

  /** Brings the agent into a state, does `meanwhile` in it, and lets the agent go on. */
  async during(state: AgentState, meanwhile: () => Promise<void>): Promise<void> {
    switch (state) {
      case "idle":
        await meanwhile();
        return;
      case "streaming": {
        const gate = this.#next(answer("One ", hold(new Gate()), "two."));
        const run = this.prompt("Begin.");
        await gate.reached;
        await meanwhile();
        gate.open();
        await run;
        return;
      }
      case "in a tool call": {
        const flag = join(this.#matrix.stage.root, `${this.#name}.go`);
        const command = `until [ -e '${flag}' ]; do sleep 0.02; done`;
        this.#script.others.push(answer("I run it.", call("bash", { command })));
        const started = await this.#event("tool_execution_start");
        const run = this.prompt("Begin.");
        await started.seen;
        await meanwhile();
        writeFileSync(flag, "");
        await run;
        return;
      }
      case "compacting": {
        await this.tellStories();
        const gate = this.#next(behind(hold(new Gate()), answer("A summary.")));
        const compaction = this.session.command({ type: "compact" });
        await gate.reached;
        await meanwhile();
        gate.open();
        await compaction;
        return;
      }
      case "in retry back-off": {
        this.#script.others.push(status(529));
        const waiting = await this.#event("auto_retry_start");
        const run = this.prompt("Begin.");
        await waiting.seen;
        await meanwhile();
        await run;
        return;
      }
    }
  }

  #next(reply: Reply): Gate {
    this.#script.others.push(reply);
    return gatesOf(reply)[0] as Gate;
  }

  /** The next event of a kind, from now on. */
  async #event(type: string): Promise<{ readonly seen: Promise<void> }> {
    const events = this.session.events();
    await events.ready;
    const seen = (async () => {
      for await (const { event } of events) if (event.type === type) return;
    })();
    seen.catch(() => {});
    return { seen };
  }
}
