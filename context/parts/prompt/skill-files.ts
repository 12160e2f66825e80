import { readFileSync, statSync } from "node:fs";
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
import { type SkillText, skillText } from "./skill-text.ts";

/** Bytes of a skill's file that are read: what is longer is left to pi. */
export const maxSkillBytes = 4 * 1024 * 1024;

const prefix = "skill:";

/** The session's skills, which come and go with pi's resources: each is read when it is asked for. */
export class SkillFiles {
  readonly #pi: Pick<ExtensionAPI, "getCommands">;

  constructor(pi: Pick<ExtensionAPI, "getCommands">) {
    this.#pi = pi;
  }

  names(): readonly string[] {
    return this.#commands().map(({ name }) => name.slice(prefix.length));
  }

  /** `undefined`: there is no such skill, or its file cannot be read. */
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
