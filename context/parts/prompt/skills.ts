import type { ExtensionAPI, ExtensionContext, InputEvent, InputEventResult } from "@earendil-works/pi-coding-agent";
import type { AgentMessage } from "../../../extension/pi-types.ts";
import { type OptimisationConfig, SKILL_TOOL } from "../../../protocol/optimisation/config.ts";
import type { TokenEstimator } from "../estimator/estimator.ts";
import type { Prefetch } from "./prefetch.ts";
import type { SkillFiles } from "./skill-files.ts";
import { beginsWithBlock, digestOf, pointerTo, type SkillText, shortUseOf } from "./skill-text.ts";
import type { StartConfig } from "./start.ts";

export interface SkillsOptions {
  readonly pi: Pick<ExtensionAPI, "getActiveTools">;
  readonly config: () => OptimisationConfig["skills"];
  readonly estimator: Pick<TokenEstimator, "text">;
  readonly files: SkillFiles;
  readonly prefetch: Prefetch;
  readonly start: StartConfig;
}

/** Skill texts in the last request. */
interface Sent {
  readonly at: number;
  readonly texts: ReadonlySet<string>;
}

const blockStart = "<skill ";

/** Shortens a skill's use if the model already has its text, or does not need it yet. */
export class Skills {
  readonly #options: SkillsOptions;
  #sent: Sent | undefined;

  constructor(options: SkillsOptions) {
    this.#options = options;
  }

  begin(): void {
    this.#sent = undefined;
  }

  /** Records the texts of the outgoing request, which can lack messages of the transcript. */
  look(messages: readonly AgentMessage[]): void {
    const texts = messages.map(userText).filter((text) => text.startsWith(blockStart));
    this.#sent = { at: Date.now(), texts: new Set(texts) };
  }

  /** Returns the replacement of a skill command. `undefined`: pi handles the text. */
  input({ text, source }: InputEvent, ctx: ExtensionContext): InputEventResult | undefined {
    const { files } = this.#options;
    const skills = this.#options.config();
    // pi does not interpret commands in messages of extensions.
    if (!skills.enabled || source === "extension") return undefined;
    const command = commandOf(text);
    if (command === undefined) return undefined;
    if (command.isWhole) {
      const isKnown = files.names().includes(command.name);
      return isKnown ? { action: "transform", text: `/skill:${text.slice("/skill!".length)}` } : undefined;
    }
    if (skills.mode === "off") return undefined;
    const skill = files.read(command.name);
    const use = skill === undefined ? undefined : this.#useOf(skill, ctx);
    if (use === undefined) return undefined;
    return { action: "transform", text: command.rest === "" ? use : `${use}\n\n${command.rest}` };
  }

  /** Savings by short uses of skills: tokens of each use, times the later requests. */
  figures({ sessionManager }: ExtensionContext): Readonly<Record<"pointers" | "digests" | "saved", number>> {
    const { estimator, files } = this.#options;
    const sizes = new Map<string, number>();
    let answers = 0;
    const uses: { readonly saved: number; readonly at: number; readonly kind: "pointer" | "digest" }[] = [];
    for (const entry of sessionManager.getEntries()) {
      if (entry.type !== "message") continue;
      if (entry.message.role === "assistant") answers += 1;
      const text = userText(entry.message as AgentMessage);
      const use = shortUseOf(text);
      if (use === undefined) continue;
      if (!sizes.has(use.name)) sizes.set(use.name, estimator.text(files.read(use.name)?.block ?? ""));
      const saved = Math.max(0, (sizes.get(use.name) ?? 0) - estimator.text(text.slice(0, use.end)));
      uses.push({ saved, at: answers, kind: use.kind });
    }
    const count = (kind: string): number => uses.filter((use) => use.kind === kind).length;
    const saved = uses.reduce((sum, use) => sum + use.saved * (answers - use.at), 0);
    return { pointers: count("pointer"), digests: count("digest"), saved };
  }

  #useOf(skill: SkillText, ctx: ExtensionContext): string | undefined {
    const { pi, estimator, prefetch, start } = this.#options;
    const { mode, digestTokens, inlineBelowTokens } = this.#options.config();
    const tokensOf = (text: string): number => estimator.text(text);
    const whole = tokensOf(skill.block);
    const less = (text: string): string | undefined => (tokensOf(text) < whole ? text : undefined);
    if (prefetch.has(skill, start.at(ctx))) return less(pointerTo(skill, "prompt", tokensOf));
    if (this.#isVisible(skill, ctx)) return less(pointerTo(skill, "message", tokensOf));
    if (mode !== "digest" || whole <= inlineBelowTokens) return undefined;
    const tool = pi.getActiveTools().includes(SKILL_TOOL) ? SKILL_TOOL : undefined;
    return less(digestOf(skill, { tokens: digestTokens, tokensOf, tool }));
  }

  /** Whether the model sees this text in an earlier message; compaction, masking and edits can remove it. */
  #isVisible({ block }: SkillText, { sessionManager }: ExtensionContext): boolean {
    const sent = this.#sent;
    return sessionManager.buildSessionProjection().entries.some(({ messages }) =>
      messages.some((message) => {
        const text = userText(message);
        if (!beginsWithBlock(text, block)) return false;
        return sent === undefined || sent.texts.has(text) || message.timestamp > sent.at;
      }),
    );
  }
}

/** The text of a user's message; pi puts it before the images. */
function userText(message: AgentMessage): string {
  if (message.role !== "user") return "";
  if (typeof message.content === "string") return message.content;
  const first = message.content[0];
  return first?.type === "text" ? first.text : "";
}

interface SkillCommand {
  readonly name: string;
  /** The text after the name. */
  readonly rest: string;
  /** `/skill!name`: always insert the whole text. */
  readonly isWhole: boolean;
}

/** Reads a command as pi does: the name ends at the first space. */
export function commandOf(text: string): SkillCommand | undefined {
  const isWhole = text.startsWith("/skill!");
  if (!isWhole && !text.startsWith("/skill:")) return undefined;
  const at = text.indexOf(" ");
  const name = text.slice("/skill:".length, at < 0 ? undefined : at);
  return { name, rest: at < 0 ? "" : text.slice(at + 1).trim(), isWhole };
}
