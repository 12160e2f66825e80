import { refusedInOwnWords } from "../allowances.ts";
import type { Scenario } from "../scenario.ts";

/** Models, levels, modes, and everything that only reads. */
export const settings: readonly Scenario[] = [
  {
    name: "get_state before anything",
    play: async (front) => {
      await front.call({ type: "get_state" });
    },
  },
  {
    name: "everything that can be read, before a prompt",
    play: readAll,
  },
  {
    name: "everything that can be read, after prompts",
    play: async (front) => {
      await front.prompt("first");
      await front.prompt("second");
      await readAll(front);
    },
  },
  {
    name: "get_entries since an entry, and since an unknown one",
    play: async (front) => {
      await front.prompt("first");
      const [entry] = await front.list<{ readonly id: string }>("get_entries", "entries");
      await front.call({ type: "get_entries", since: entry?.id });
      await front.call({ type: "get_entries", since: "unknown" });
    },
  },
  {
    name: "set_model, also of an unknown one",
    play: async (front) => {
      await front.call({ type: "set_model", provider: "scripted", modelId: "model-2" });
      await front.call({ type: "set_model", provider: "scripted", modelId: "nothing" });
      await front.call({ type: "set_model", provider: "unknown", modelId: "model-1" });
      await front.call({ type: "get_state" });
      await front.prompt("hello");
      await front.call({ type: "set_model", provider: "scripted-anthropic", modelId: "model-1" });
      await front.prompt("hello again");
    },
  },
  {
    name: "cycle_model",
    play: async (front) => {
      await front.call({ type: "cycle_model" });
      await front.call({ type: "cycle_model" });
      await front.call({ type: "get_state" });
    },
  },
  {
    name: "models for cycle_model by the command line",
    args: ["--models", "scripted/model-2, scripted/think*:low"],
    play: async (front) => {
      await front.call({ type: "get_state" });
      await front.call({ type: "cycle_model" });
      await front.call({ type: "cycle_model" });
      await front.prompt("hello");
      await front.call({ type: "new_session" });
      await front.call({ type: "get_state" });
    },
  },
  {
    name: "thinking levels of a model that has some",
    args: ["--model", "scripted/thinker"],
    play: async (front) => {
      await front.call({ type: "get_available_thinking_levels" });
      await front.call({ type: "set_thinking_level", level: "high" });
      await front.call({ type: "set_thinking_level", level: "high" });
      await front.call({ type: "cycle_thinking_level" });
      await front.call({ type: "cycle_thinking_level" });
      await front.call({ type: "get_state" });
      await front.prompt("hello");
    },
  },
  {
    name: "thinking levels of a model without",
    play: async (front) => {
      await front.call({ type: "get_available_thinking_levels" });
      await front.call({ type: "set_thinking_level", level: "high" });
      await front.call({ type: "cycle_thinking_level" });
      await front.call({ type: "get_state" });
    },
  },
  {
    name: "a model and a level by the command line",
    args: ["--provider", "scripted", "--model", "thinker:low", "--name", "my work"],
    play: async (front) => {
      await front.call({ type: "get_state" });
    },
  },
  {
    name: "an unknown thinking level",
    allow: [refusedInOwnWords("bogus")],
    play: async (front) => {
      await front.call({ id: "bogus", type: "set_thinking_level", level: "bogus" });
    },
  },
  {
    name: "modes of the queues, retries and compaction",
    play: async (front) => {
      await front.call({ type: "set_steering_mode", mode: "all" });
      await front.call({ type: "set_follow_up_mode", mode: "all" });
      await front.call({ type: "set_auto_retry", enabled: false });
      await front.call({ type: "set_auto_compaction", enabled: false });
      await front.call({ type: "get_state" });
      await front.call({ type: "set_steering_mode", mode: "one-at-a-time" });
      await front.call({ type: "set_auto_compaction", enabled: true });
      await front.call({ type: "abort_retry" });
      await front.call({ type: "get_state" });
    },
  },
  {
    name: "set_session_name, also with blanks only",
    play: async (front) => {
      await front.call({ type: "set_session_name", name: " näme 😀 " });
      await front.call({ type: "set_session_name", name: "  " });
      await front.call({ type: "get_state" });
      await front.prompt("hello");
      await front.call({ type: "set_session_name", name: "other" });
      await front.call({ type: "get_entries" });
    },
  },
];

async function readAll(front: Parameters<Scenario["play"]>[0]): Promise<void> {
  for (const type of [
    "get_messages",
    "get_entries",
    "get_tree",
    "get_session_stats",
    "get_commands",
    "get_available_models",
    "get_last_assistant_text",
    "get_fork_messages",
    "get_state",
  ]) {
    await front.call({ type });
  }
}
