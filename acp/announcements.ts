import type { SessionUpdate } from "@agentclientprotocol/sdk";
import type { SessionInfo } from "../protocol/session.ts";
import { builtins, commandsOf } from "./builtins.ts";
import { type Choices, type Chosen, choicesOf, readChosen } from "./choices.ts";
import type { Port } from "./port.ts";

export interface AnnouncementsOptions {
  readonly sessionId: string;
  readonly port: Port;
  /** Whether the client can export a session to a file. */
  readonly canExport: boolean;
  readonly update: (update: SessionUpdate) => void;
  /** The client has left the session. */
  readonly left: AbortSignal;
}

/** Tells the client what a session is, next to what happens in it: its title, commands, model and thinking level. */
export class Announcements {
  readonly #options: AnnouncementsOptions;
  #chosen: Chosen | undefined;
  /** The commands that the client knows, as JSON. */
  #commandsText = "";
  /** Whether the client is being told what is chosen, and whether it has to be told again after that. */
  #telling: "no" | "once" | "again" = "no";
  #info: Pick<SessionInfo, "name" | "generation"> | undefined;

  constructor(options: AnnouncementsOptions) {
    this.#options = options;
  }

  /** Reads what can be chosen. */
  async choices(): Promise<Choices> {
    const { port, sessionId } = this.#options;
    this.#chosen = await readChosen(port, sessionId);
    return choicesOf(this.#chosen);
  }

  get hasModel(): boolean {
    return this.#chosen?.models.length !== 0;
  }

  /** The size of the model's context window in tokens. Undefined: it is not known. */
  get contextSize(): number | undefined {
    return this.#chosen?.model?.contextWindow;
  }

  /** Tells the client which thinking level the session has now: pi takes the nearest one that the model has. */
  async tellLevel(): Promise<Choices> {
    const choices = await this.choices();
    this.#options.update({ sessionUpdate: "current_mode_update", currentModeId: choices.modes.currentModeId });
    return choices;
  }

  /** The session is another now, or was told for the first time. */
  updated(session: SessionInfo): void {
    const { name, generation, model, thinkingLevel, updatedAt } = session;
    const former = this.#info;
    this.#info = { generation, ...(name === undefined ? {} : { name }) };
    if (name !== undefined && name !== former?.name) {
      const sessionUpdate = "session_info_update";
      this.#options.update({ sessionUpdate, title: name, updatedAt: new Date(updatedAt).toISOString() });
    }
    if (former !== undefined && generation !== former.generation) void this.tellCommands();
    const { model: knownModel, level } = this.#chosen ?? {};
    const isSame = model?.id === knownModel?.id && model?.provider === knownModel?.provider && thinkingLevel === level;
    if (model === undefined) return;
    if (this.#telling !== "no") this.#telling = "again";
    else if (!isSame) void this.#tellChoices();
  }

  /** Tells the client pi's commands and ours, unless it knows them. */
  async tellCommands(): Promise<void> {
    const { port, sessionId, canExport } = this.#options;
    const commands = await commandsOf(port, sessionId).catch(() => []);
    const names = new Set(commands.map(({ name }) => name));
    const own = builtins.filter(({ name }) => !names.has(name) && (canExport || name !== "export"));
    const availableCommands = [...commands, ...own];
    const text = JSON.stringify(availableCommands);
    if (this.#options.left.aborted || text === this.#commandsText) return;
    this.#commandsText = text;
    this.#options.update({ sessionUpdate: "available_commands_update", availableCommands });
  }

  /** What changes while the choices are read may be missing in them. */
  async #tellChoices(): Promise<void> {
    do {
      this.#telling = "once";
      await this.#tellChoicesNow();
    } while (this.#telling !== "once" && !this.#options.left.aborted);
    this.#telling = "no";
  }

  async #tellChoicesNow(): Promise<void> {
    const former = this.#chosen?.level;
    const choices = await this.choices().catch(() => undefined);
    if (choices === undefined) return;
    const { configOptions, modes } = choices;
    this.#options.update({ sessionUpdate: "config_option_update", configOptions });
    if (modes.currentModeId !== former)
      this.#options.update({ sessionUpdate: "current_mode_update", currentModeId: modes.currentModeId });
  }
}
