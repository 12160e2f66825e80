/** How clients reach a documented command of pi. */
export interface PiCommandRoute {
  /** The method for it. Absent if clients cannot use it. */
  readonly method?: string;
  /** Whether `session/command` also accepts it. Commands that the daemon must see or limit are refused there. */
  readonly asItIs: boolean;
  /** The setting in the user's shared settings file that the command rewrites (measured on both versions). */
  readonly setting?: string;
}

/** Every command of pi's RPC (docs/rpc-commands.md of pi 1.5.2), and the method for it. */
export const piCommands = {
  prompt: { method: "session/prompt", asItIs: false },
  steer: { method: "session/steer", asItIs: false },
  follow_up: { method: "session/followUp", asItIs: false },
  abort: { method: "session/abort", asItIs: false },
  clear_queue: { method: "session/clearQueue", asItIs: false },
  new_session: { method: "session/create", asItIs: false },
  get_state: { method: "session/getState", asItIs: true },
  get_messages: { method: "session/getMessages", asItIs: true },
  set_model: { method: "session/setModel", asItIs: true },
  cycle_model: { method: "session/cycleModel", asItIs: true },
  get_available_models: { method: "model/list", asItIs: true },
  set_thinking_level: { method: "session/setThinkingLevel", asItIs: true },
  cycle_thinking_level: { method: "session/cycleThinkingLevel", asItIs: true },
  get_available_thinking_levels: { method: "session/getThinkingLevels", asItIs: true },
  set_steering_mode: { method: "session/setSteeringMode", asItIs: true, setting: "steeringMode" },
  set_follow_up_mode: { method: "session/setFollowUpMode", asItIs: true, setting: "followUpMode" },
  compact: { method: "session/compact", asItIs: true },
  set_auto_compaction: { method: "session/setAutoCompaction", asItIs: true, setting: "compaction.enabled" },
  set_auto_retry: { method: "session/setAutoRetry", asItIs: true, setting: "retry.enabled" },
  abort_retry: { method: "session/abortRetry", asItIs: true },
  bash: { method: "session/bash", asItIs: false },
  abort_bash: { method: "session/abortBash", asItIs: true },
  get_session_stats: { method: "session/getStats", asItIs: true },
  export_html: { method: "session/export", asItIs: false },
  switch_session: { method: "session/open", asItIs: false },
  fork: { method: "session/fork", asItIs: false },
  clone: { method: "session/clone", asItIs: false },
  get_fork_messages: { method: "session/getForkMessages", asItIs: true },
  get_entries: { method: "session/getEntries", asItIs: true },
  get_tree: { method: "session/getTree", asItIs: true },
  get_last_assistant_text: { method: "session/getLastText", asItIs: true },
  set_session_name: { method: "session/rename", asItIs: true },
  get_commands: { method: "session/getCommands", asItIs: true },
} as const satisfies Readonly<Record<string, PiCommandRoute>>;

/** How a command is reached, if pi documents it. */
export function routeOf(command: string): PiCommandRoute | undefined {
  return Object.hasOwn(piCommands, command) ? piCommands[command as keyof typeof piCommands] : undefined;
}
