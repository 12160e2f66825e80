// Payloads as pi makes them, for each API, with tools that are not sorted by name.

const mark = { type: "ephemeral" } as const;
const schema = { type: "object", properties: { path: { type: "string" } }, required: ["path"] };

/** Anthropic, with the three marks of a key, or the four of OAuth. */
export function anthropic({ isOAuth = false, last = "What now?" } = {}) {
  const identity = {
    type: "text",
    text: "You are Claude Code, Anthropic's official CLI for Claude.",
    cache_control: mark,
  };
  return {
    model: "claude-x",
    max_tokens: 16_384,
    stream: true,
    system: [...(isOAuth ? [identity] : []), { type: "text", text: "You are an expert.", cache_control: mark }],
    tools: [
      { name: "read", description: "Reads.", input_schema: schema },
      { name: "bash", description: "Runs.", input_schema: schema },
      { name: "edit", description: "Edits.", input_schema: schema, cache_control: mark },
    ],
    messages: [
      { role: "user", content: [{ type: "text", text: "Read it." }] },
      { role: "assistant", content: [{ type: "tool_use", id: "t1", name: "read", input: { path: "a" } }] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "t1", content: "A file.", is_error: false }] },
      { role: "user", content: [{ type: "text", text: last, cache_control: mark }] },
    ],
  };
}

/** pi's request to keep Anthropic's cache warm. */
export function warming(payload: ReturnType<typeof anthropic>) {
  return { ...payload, max_tokens: 1 };
}

export function openai() {
  const tool = (name: string) => ({ type: "function", function: { name, description: "", parameters: schema } });
  return {
    model: "gpt-x",
    stream: true,
    max_completion_tokens: 16_384,
    messages: [
      { role: "system", content: "You are an expert." },
      { role: "user", content: "Read it." },
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "t1", type: "function", function: { name: "read", arguments: "{}" } }],
      },
      { role: "tool", tool_call_id: "t1", content: "A file." },
    ],
    tools: [tool("read"), tool("bash"), tool("edit")],
  };
}

export function responses() {
  const tool = (name: string) => ({ type: "function", name, description: "", parameters: schema, strict: false });
  return {
    model: "gpt-x",
    stream: true,
    store: false,
    prompt_cache_key: "s-1",
    max_output_tokens: 16_384,
    input: [
      { role: "developer", content: "You are an expert." },
      { role: "user", content: [{ type: "input_text", text: "Read it." }] },
      { type: "function_call", call_id: "t1", name: "read", arguments: "{}" },
      { type: "function_call_output", call_id: "t1", output: "A file." },
    ],
    tools: [tool("read"), tool("bash"), tool("edit")],
  };
}

export function google() {
  const tool = (name: string) => ({ name, description: "", parametersJsonSchema: schema });
  return {
    model: "gemini-x",
    contents: [
      { role: "user", parts: [{ text: "Read it." }] },
      { role: "model", parts: [{ functionCall: { name: "read", args: { path: "a" } } }] },
      { role: "user", parts: [{ functionResponse: { name: "read", response: { output: "A file." } } }] },
    ],
    config: {
      systemInstruction: "You are an expert.",
      maxOutputTokens: 16_384,
      tools: [{ functionDeclarations: [tool("read"), tool("bash"), tool("edit")] }],
    },
  };
}

export const payloads = { anthropic, openai, responses, google } as const;
