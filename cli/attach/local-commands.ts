import { type AutocompleteItem, fuzzyFilter, type SlashCommand } from "@earendil-works/pi-tui";
import type { Client, SessionHandle, SessionInfo } from "../../client/index.ts";
import { nearest } from "../../protocol/configuration/nearest.ts";
import { usd } from "../../protocol/number-text.ts";
import { sumLines } from "../cost.ts";
import { credentialsAdvice, noModelAdvice } from "../credentials.ts";
import { duration, shortId } from "../format.ts";
import { chooseModel, modelsLike } from "../model.ts";
import { chooseSession } from "../session-argument.ts";
import { oneLine, printable } from "../text.ts";
import { Choice } from "./choice.ts";
import type { Screen } from "./screen.ts";

export interface LocalCommandOptions {
  readonly client: Client;
  readonly session: SessionHandle;
  readonly screen: Screen;
  readonly env: NodeJS.ProcessEnv;
  /** Whether the session is removed when the user leaves. */
  readonly isTemporary: boolean;
  /** Called with the session that the user wants to see instead. */
  readonly onSwitch: (sessionId: string) => void;
  readonly onLeave: () => void;
}

/** `prompt`: the text is not a command of this screen. */
export type CommandEnd =
  | { readonly kind: "done" }
  | { readonly kind: "prompt" }
  | { readonly kind: "refused"; readonly why: string };

const done: CommandEnd = { kind: "done" };
const keysOf = (effect: string): readonly string[] => [
  "Enter          sends; during a run the agent gets it before its next request (--if-running)",
  "Alt-Enter      queues until the run would end",
  "Shift-Enter    a new line; also Ctrl-J, or \\ and Enter",
  "Esc            aborts the run, a compaction or a shell command, dismisses a question",
  "Ctrl-C         clears your text; twice leaves",
  `Ctrl-D         leaves; ${effect}`,
  "Ctrl-Z         suspends; fg returns",
  "Ctrl-T, Ctrl-O show thinking, and complete outputs",
  "Up, Down       the history",
  "@ and Tab      complete files, / completes commands",
  "!COMMAND       runs a shell command in the session; !!COMMAND keeps its output from the model",
  "a space first  sends the text as it is, also if / or ! follows",
];

interface LocalCommand {
  readonly description: string;
  readonly argument?: string;
  readonly run: (argument: string) => Promise<CommandEnd> | CommandEnd;
}

/** The commands of the screen, which do not reach the model, and the names of pi's own. */
export class LocalCommands {
  readonly #options: LocalCommandOptions;
  readonly #table: Readonly<Record<string, LocalCommand>>;
  /** pi's commands: those of extensions, templates and skills. Undefined if they are unknown. */
  #ofPi: ReadonlyMap<string, string> | undefined;

  constructor(options: LocalCommandOptions) {
    this.#options = options;
    this.#table = {
      help: { description: "shows the keys and commands", run: () => this.#help() },
      model: { description: "changes the model", argument: "[MODEL]", run: (word) => this.#model(word) },
      compact: {
        ...{ description: "replaces old messages by a summary", argument: "[INSTRUCTIONS]" },
        run: (text) => this.#compact(text),
      },
      name: { description: "names the session", argument: "[NAME]", run: (text) => this.#name(text) },
      cost: { description: "shows what the session cost", run: () => this.#cost() },
      sessions: {
        description: "switches to another session",
        argument: "[SESSION]",
        run: (word) => this.#sessions(word),
      },
      push: { description: "pushes a message, with a receipt", argument: "TEXT", run: (text) => this.#push(text) },
      quit: { description: `leaves; ${this.#effect}`, run: () => this.#leave() },
    };
  }

  /** Runs a text if it is one of these commands; a text of pi's commands, or of no command, is a prompt. */
  async run(text: string): Promise<CommandEnd> {
    if (text.trim() === "?") return await this.#help();
    const [, name, argument = ""] = /^\/(\S*)\s*([\s\S]*)$/.exec(text) ?? [];
    // A path is not a command.
    if (name === undefined || name.includes("/")) return { kind: "prompt" };
    if (Object.hasOwn(this.#table, name)) return (await this.#table[name]?.run(argument.trim())) ?? done;
    if (this.#ofPi?.has(name) !== true) await this.load();
    if (this.#ofPi?.has(name) === true) return { kind: "prompt" };
    const whether =
      this.#ofPi === undefined
        ? "is not a command of attach, and pi's commands are only known while pi is running"
        : "is not a command";
    if (name === "login" || name === "logout") {
      return { kind: "refused", why: `/${name} is a command of pi's terminal. ${await this.credentialsAdvice()}` };
    }
    const near = this.#nearest(name === "" ? (argument.split(/\s/)[0] ?? "") : name);
    const hint = near === undefined ? "/help lists all commands." : `Did you mean /${near}?`;
    return { kind: "refused", why: `/${name} ${whether}. ${hint} To send it as text, begin with a space.` };
  }

  /** Says how to give pi credentials. */
  async credentialsAdvice(): Promise<string> {
    const { client, env } = this.#options;
    return credentialsAdvice({ info: await client.info(), env });
  }

  /** What happens to the session when the user leaves. */
  get #effect(): string {
    return this.#options.isTemporary ? "the session is removed" : "the session continues";
  }

  /** The command that a user most likely meant. */
  #nearest(word: string): string | undefined {
    const known = [...Object.keys(this.#table), ...(this.#ofPi?.keys() ?? [])].filter((name) => name !== "");
    return nearest(word, known.map(oneLine), Math.ceil(word.length / 3));
  }

  /** Asks for pi's commands, which a session without a pi may not know. */
  async load(): Promise<void> {
    const { client, session } = this.#options;
    try {
      const { commands } = await client.call("session/getCommands", { sessionId: session.id });
      this.#ofPi = new Map(commands.map(({ name, description = "" }) => [name, oneLine(description)]));
    } catch {
      this.#ofPi = undefined;
    }
  }

  /** All commands, for completion. */
  completions(): SlashCommand[] {
    const own = Object.entries(this.#table).map(([name, { description, argument }]) => ({
      name,
      description,
      ...(argument === undefined ? {} : { argumentHint: argument }),
      ...(name === "sessions" ? { getArgumentCompletions: (word: string) => this.#sessionsLike(word) } : {}),
    }));
    // A name with other characters could not be typed, or would control the terminal.
    const names = [...(this.#ofPi ?? [])].filter(
      ([name]) => /^[\w:.-]+$/.test(name) && !Object.hasOwn(this.#table, name),
    );
    return [...own, ...names.map(([name, description]) => ({ name, description }))];
  }

  async #help(): Promise<CommandEnd> {
    if (this.#ofPi === undefined) await this.load();
    const { screen } = this.#options;
    const own = Object.entries(this.#table).map(([name, { description, argument = "" }]) => [
      `/${name} ${argument}`,
      description,
    ]);
    const rows = own.map(([usage = "", description = ""]) => `${usage.padEnd(24)} ${description}`);
    const others = [...(this.#ofPi ?? [])].map(([name]) => `/${oneLine(name)}`);
    const ofPi = others.length === 0 ? [] : ["", `Commands of pi in this session: ${others.join(" ")}`];
    screen.line([...keysOf(this.#effect), "", ...rows, ...ofPi].map((row) => ` ${row}`).join("\n"));
    return done;
  }

  async #model(word: string): Promise<CommandEnd> {
    const { client, session, screen, env } = this.#options;
    const { models } = await client.listModels({ sessionId: session.id });
    if (models.length === 0)
      return { kind: "refused", why: noModelAdvice(undefined, { info: await client.info(), env }) };
    const some = word === "" ? models : modelsLike(models, word);
    const labels = some.map(({ provider, id }) => `${provider}/${id}`);
    const name = some.length > 1 ? await this.#choose({ title: "Which model?", labels }) : labels[0];
    const model = some.length === 0 ? chooseModel(models, word) : some[labels.indexOf(name ?? "")];
    if (model === undefined) return done;
    await session.setModel(model.provider, model.id);
    screen.line(` The next request goes to ${name}.`, "dim");
    return done;
  }

  async #compact(customInstructions: string): Promise<CommandEnd> {
    const { session, screen } = this.#options;
    await session.compact(customInstructions === "" ? {} : { customInstructions });
    screen.line(" Old messages were replaced by a summary.", "dim");
    return done;
  }

  async #name(name: string): Promise<CommandEnd> {
    const { client, session, screen } = this.#options;
    if (name === "") screen.line(` The session's name is ${(await session.get()).name ?? "not set"}.`, "dim");
    else await client.call("session/rename", { sessionId: session.id, name });
    return done;
  }

  async #cost(): Promise<CommandEnd> {
    const { client, session, screen } = this.#options;
    const report = await client.call("cost/report", { sessionId: session.id });
    const models = Object.entries(report.byModel).map(([name, usage]) => `  ${name}: ${usd(usage.cost.total)}`);
    screen.line([...sumLines(report), ...models].map((line) => ` ${line}`).join("\n"));
    return done;
  }

  async #sessions(word: string): Promise<CommandEnd> {
    const { client, session, isTemporary, onSwitch } = this.#options;
    const sessions = await client.listSessions();
    const others = sessions.filter(({ sessionId }) => sessionId !== session.id);
    if (word !== "") {
      onSwitch(chooseSession(sessions, word));
      return done;
    }
    if (others.length === 0) {
      const advice = isTemporary ? "" : " pi-rpcd new creates one.";
      return { kind: "refused", why: `There is no other session.${advice}` };
    }
    const labels = others.map(labelOf);
    const label = await this.#choose({ title: "Which session?", labels });
    const chosen = others[labels.indexOf(label ?? "")];
    if (chosen !== undefined) onSwitch(chosen.sessionId);
    return done;
  }

  async #push(content: string): Promise<CommandEnd> {
    const { session, screen } = this.#options;
    if (content === "") return { kind: "refused", why: "/push needs a text." };
    const handle = session.push({ customType: "pi-rpcd.push", content });
    await handle.accepted;
    screen.line(` » ${handle.id} was accepted`, "dim");
    return done;
  }

  #leave(): CommandEnd {
    this.#options.onLeave();
    return done;
  }

  /** Sessions that a part of their id, name or directory may mean; none if the id is complete, so that Enter sends. */
  async #sessionsLike(word: string): Promise<AutocompleteItem[]> {
    const { client, session } = this.#options;
    const others = (await client.listSessions()).filter(({ sessionId }) => sessionId !== session.id);
    const items = others.map((info) => {
      const id = printable(shortId(info.sessionId));
      return { value: id, label: id, description: labelOf(info) };
    });
    if (items.some(({ value }) => value === word)) return [];
    return fuzzyFilter(items, word, ({ description }) => description);
  }

  /** Lets the user choose; undefined if the list is dismissed. */
  #choose({
    title,
    labels,
  }: {
    readonly title: string;
    readonly labels: readonly string[];
  }): Promise<string | undefined> {
    const { screen } = this.#options;
    const { promise, resolve } = Promise.withResolvers<string | undefined>();
    const choice = new Choice({
      ...{ title, theme: screen.theme, items: labels.map((label) => ({ label })), isFiltered: true },
      onChoice: (index) => {
        screen.endInput(choice);
        resolve(index === undefined ? undefined : labels[index]);
      },
    });
    screen.beginInput(choice);
    return promise;
  }
}

function labelOf(info: SessionInfo): string {
  const { sessionId, name, state, cwd, createdAt } = info;
  return oneLine(
    [shortId(sessionId), name, state, cwd, `${duration(Date.now() - createdAt)} old`].filter(Boolean).join(" · "),
  );
}
