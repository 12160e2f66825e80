import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
import { SKILL_TOOL } from "../../../protocol/optimisation/config.ts";
import type { SkillFiles } from "./skill-files.ts";
import { detailOf } from "./skill-text.ts";

type Tool = Parameters<ExtensionAPI["registerTool"]>[0];

const parameters = {
  type: "object",
  properties: {
    name: { type: "string", description: "The skill's name." },
    section: { type: "string", description: "One of its headings: only what stands under it." },
  },
  required: ["name"],
  additionalProperties: false,
};

/** The tool that returns the text that a digest omits. */
export function skillTool(files: SkillFiles): Tool {
  return {
    name: SKILL_TOOL,
    label: "Skill",
    description: "Gives the text of a skill of which only a digest was shown, whole or one section of it.",
    // pi accepts any JSON schema, but its type is that of one library.
    parameters: parameters as unknown as Tool["parameters"],
    execute: (_callId, params) => {
      const { name, section } = params as { readonly name: string; readonly section?: string };
      const skill = files.read(name);
      if (skill === undefined) return Promise.reject(new Error(noSkill(name, files.names())));
      try {
        const text = detailOf(skill, section);
        return Promise.resolve({ content: [{ type: "text", text }], details: undefined });
      } catch (error) {
        return Promise.reject(error as Error);
      }
    },
  };
}

function noSkill(name: string, names: readonly string[]): string {
  const known = names.length === 0 ? "There are none." : `There are: ${names.slice(0, 64).join(", ")}`;
  return `There is no skill "${name.slice(0, 128)}" here, or its file cannot be read. ${known.slice(0, 4_000)}`;
}
