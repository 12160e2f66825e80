import { readFileSync, statSync } from "node:fs";
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
import { type SkillText, skillText } from "./skill-text.ts";

/** Maximum bytes of a skill file; pi handles longer ones. */
export const maxSkillBytes = 4 * 1024 * 1024;

const prefix = "skill:";

/** The session's skills, read on request because pi's resources can change. */
export class SkillFiles {
  readonly #pi: Pick<ExtensionAPI, "getCommands">;

  constructor(pi: Pick<ExtensionAPI, "getCommands">) {
    this.#pi = pi;
  }

  names(): readonly string[] {
    return this.#commands().map(({ name }) => name.slice(prefix.length));
  }

  /** `undefined`: the skill is unknown, or its file is unreadable. */
  read(name: string): SkillText | undefined {
    const found = this.#commands().find((command) => command.name === prefix + name);
    if (found === undefined) return undefined;
    const { path } = found.sourceInfo;
    try {
      const stats = statSync(path);
      if (!stats.isFile() || stats.size > maxSkillBytes) return undefined;
      return skillText(name, found.description ?? "", path, readFileSync(path, "utf8"));
    } catch {
      return undefined;
    }
  }

  #commands(): ReturnType<ExtensionAPI["getCommands"]> {
    return this.#pi.getCommands().filter(({ source, name }) => source === "skill" && name.startsWith(prefix));
  }
}
