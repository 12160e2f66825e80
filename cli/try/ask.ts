import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";

/** An extension for pi: a tool by which the scripted model asks the user. */
export default function asking(pi: ExtensionAPI): void {
  pi.registerTool({
    name: "ask_user",
    label: "Ask the user",
    description: "Asks the user to choose one of the options.",
    // A JSON schema: this file runs in pi, and imports nothing.
    parameters: {
      type: "object",
      properties: { question: { type: "string" }, options: { type: "array", items: { type: "string" } } },
      required: ["question", "options"],
    },
    async execute(_toolCallId, params, signal, _onUpdate, { ui }) {
      const { question, options } = params as { readonly question: string; readonly options: string[] };
      const chosen = await ui.select(question, options, signal === undefined ? {} : { signal });
      signal?.throwIfAborted();
      const text = chosen === undefined ? "The user chose nothing." : `The user chose: ${chosen}`;
      return { content: [{ type: "text", text }], details: undefined };
    },
  });
}
