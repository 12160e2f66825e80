import { cachedFields } from "./cached.ts";
import { DeliveryEffects } from "./delivery.ts";
import { SessionId } from "./ids.ts";
import { Type } from "./json-schema.ts";
import type { MethodRow } from "./method-row.ts";
import {
  cachedErrors,
  commandErrors,
  idempotencyKey,
  params,
  questionErrors,
  sessionIdAndCached,
  sessionIdOnly,
  sessionName,
} from "./params.ts";
import {
  PiBash,
  PiCommandList,
  PiCompaction,
  PiEntries,
  PiForkMessages,
  PiMessages,
  PiModel,
  PiState,
  PiStats,
  PiTree,
} from "./pi-data.ts";
import { ThinkingLevel } from "./session.ts";
import { EntryId, EntryLabel, Navigation } from "./tree.ts";

const reads = { scope: "none", capability: "observe", retry: "safe", since: "0.1.0", errors: questionErrors } as const;
const changes = {
  scope: "none",
  asleep: "wake",
  capability: "prompt",
  retry: "never",
  since: "0.1.0",
  errors: commandErrors,
} as const;
const repeatable = { ...changes, retry: "keyed" } as const;
const nothing = params({});

/** Rows of the method table about pi's own commands. */
export const commandMethods = {
  "session/getState": {
    summary: "pi's state in its own words; `session/get` has the daemon's.",
    params: sessionIdOnly,
    result: PiState,
    http: { verb: "GET", path: "/v1/sessions/{sessionId}/state" },
    ...reads,
    asleep: "file",
    alsoCached: true,
    pi: { command: "get_state", asItIs: true },
  },
  "session/getMessages": {
    summary: "The messages that pi has in its context.",
    params: sessionIdOnly,
    result: PiMessages,
    http: { verb: "GET", path: "/v1/sessions/{sessionId}/messages" },
    ...reads,
    asleep: "file",
    pi: { command: "get_messages", asItIs: true },
  },
  "session/getEntries": {
    summary: "The entries of the session file in their order, abandoned branches included.",
    params: params({
      sessionId: SessionId,
      since: Type.Optional(
        Type.String({ minLength: 1, maxLength: 128, description: "Only entries after the one with this id." }),
      ),
    }),
    result: PiEntries,
    http: { verb: "GET", path: "/v1/sessions/{sessionId}/entries" },
    ...reads,
    asleep: "file",
    pi: { command: "get_entries", asItIs: true },
  },
  "session/getTree": {
    summary:
      "The entries of the session file as a tree, in pi's form. Each entry is nested two JSON levels deeper than its parent. A tree deeper than 5,000 entries is `too_large`; `session/getEntries` returns a list.",
    params: sessionIdOnly,
    result: PiTree,
    http: { verb: "GET", path: "/v1/sessions/{sessionId}/tree" },
    ...reads,
    asleep: "file",
    pi: { command: "get_tree", asItIs: true },
  },
  "session/getForkMessages": {
    summary: "The user's messages that the session can be forked at.",
    params: sessionIdOnly,
    result: PiForkMessages,
    http: { verb: "GET", path: "/v1/sessions/{sessionId}/fork-messages" },
    ...reads,
    asleep: "file",
    pi: { command: "get_fork_messages", asItIs: true },
  },
  "session/getLastText": {
    summary: "The text of the last assistant message.",
    params: sessionIdOnly,
    result: Type.Object(
      {
        text: Type.Union([Type.String(), Type.Null()], { description: "`null` if there is none." }),
        ...cachedFields,
      },
      { additionalProperties: true },
    ),
    http: { verb: "GET", path: "/v1/sessions/{sessionId}/last-text" },
    ...reads,
    asleep: "file",
    pi: { command: "get_last_assistant_text", asItIs: true },
  },
  "session/getStats": {
    summary: "Tokens, costs, and how full the context is.",
    params: sessionIdAndCached,
    result: PiStats,
    http: { verb: "GET", path: "/v1/sessions/{sessionId}/stats" },
    ...reads,
    errors: cachedErrors,
    asleep: "file",
    alsoCached: true,
    pi: { command: "get_session_stats", asItIs: true },
  },
  "session/getCommands": {
    summary: "What a prompt that begins with `/` can run: commands of extensions, prompt templates and skills.",
    params: sessionIdAndCached,
    result: PiCommandList,
    http: { verb: "GET", path: "/v1/sessions/{sessionId}/commands" },
    ...reads,
    errors: cachedErrors,
    asleep: "cached",
    pi: { command: "get_commands", asItIs: true },
  },
  "session/getThinkingLevels": {
    summary: "The thinking levels that the session's model supports.",
    params: sessionIdAndCached,
    result: Type.Object({ levels: Type.Array(Type.String()), ...cachedFields }, { additionalProperties: true }),
    http: { verb: "GET", path: "/v1/sessions/{sessionId}/thinking-levels" },
    ...reads,
    errors: cachedErrors,
    asleep: "cached",
    pi: { command: "get_available_thinking_levels", asItIs: true },
  },
  "session/setModel": {
    summary: "Sets the session's model and returns it. The user's settings do not change.",
    params: params({
      sessionId: SessionId,
      provider: Type.String({ minLength: 1, maxLength: 128 }),
      modelId: Type.String({ minLength: 1, maxLength: 256 }),
      idempotencyKey,
    }),
    result: PiModel,
    http: { verb: "PUT", path: "/v1/sessions/{sessionId}/model" },
    ...repeatable,
    effect: "setting",
    pi: { command: "set_model", asItIs: true },
  },
  "session/cycleModel": {
    summary: "Switches the session to the next available model.",
    params: params({ sessionId: SessionId, idempotencyKey }),
    result: Type.Object(
      {
        changed: Type.Boolean({ description: "Whether there was another model." }),
        model: Type.Optional(PiModel),
        thinkingLevel: Type.Optional(Type.String()),
        isScoped: Type.Optional(Type.Boolean({ description: "Whether pi's settings restrict the cycled models." })),
      },
      { additionalProperties: true },
    ),
    http: { verb: "POST", path: "/v1/sessions/{sessionId}/model/cycle" },
    ...repeatable,
    pi: { command: "cycle_model", asItIs: true },
  },
  "session/setThinkingLevel": {
    summary: "Sets the thinking level. Returns the level in effect, because a model may support fewer levels.",
    params: params({ sessionId: SessionId, level: ThinkingLevel, idempotencyKey }),
    result: Type.Object({ level: Type.Optional(Type.String()) }, { additionalProperties: false }),
    http: { verb: "PUT", path: "/v1/sessions/{sessionId}/thinking-level" },
    ...repeatable,
    effect: "setting",
    pi: { command: "set_thinking_level", asItIs: true },
  },
  "session/cycleThinkingLevel": {
    summary: "Switches to the next thinking level that the model supports.",
    params: params({ sessionId: SessionId, idempotencyKey }),
    result: Type.Object(
      { changed: Type.Boolean({ description: "Whether the model can think." }), level: Type.Optional(Type.String()) },
      { additionalProperties: true },
    ),
    http: { verb: "POST", path: "/v1/sessions/{sessionId}/thinking-level/cycle" },
    ...repeatable,
    pi: { command: "cycle_thinking_level", asItIs: true },
  },
  "session/rename": {
    summary: "Sets the session's name in the daemon's and pi's own lists.",
    params: params({ sessionId: SessionId, name: sessionName, idempotencyKey }),
    result: nothing,
    http: { verb: "PUT", path: "/v1/sessions/{sessionId}/name" },
    ...repeatable,
    effect: "setting",
    pi: { command: "set_session_name", asItIs: true },
  },
  "session/compact": {
    summary:
      "Replaces the older part of the context with a summary, and returns when it is done. Only while no run and no other compaction is active, because pi would abort it. `session/abort` ends the compaction; cancelling the call only ends the wait.",
    params: params({
      sessionId: SessionId,
      customInstructions: Type.Optional(
        Type.String({ minLength: 1, maxLength: 65_536, description: "What the summary must keep." }),
      ),
      idempotencyKey,
    }),
    result: Type.Object({ compaction: PiCompaction, deliveries: DeliveryEffects }, { additionalProperties: false }),
    ...repeatable,
    http: { verb: "POST", path: "/v1/sessions/{sessionId}/compact" },
    scope: "session",
    errors: [...commandErrors, "session_busy"],
    rate: "prompts",
    pi: { command: "compact", asItIs: true },
  },
  "session/navigate": {
    summary:
      "Continues from another entry of the session's tree, in the same session and file. Only while no run is active. With `summarize`, the model summarises the abandoned branch where the session continues; `session/abort` ends that.",
    params: params({
      sessionId: SessionId,
      entryId: {
        ...EntryId,
        description:
          "New end of the branch. For a user's or a custom message the branch ends before it, so that another message can replace it.",
      },
      summarize: Type.Optional(Type.Boolean({ default: false, description: "Summarises the abandoned branch." })),
    }),
    result: Navigation,
    http: { verb: "POST", path: "/v1/sessions/{sessionId}/navigate" },
    ...changes,
    scope: "session",
    // Another client may have navigated since, so it is not repeated.
    errors: [...commandErrors, "session_busy", "entry_not_found"],
  },
  "session/setLabel": {
    summary: "Sets or removes the label of an entry in the session's file. Also allowed during a run.",
    params: params({
      sessionId: SessionId,
      entryId: EntryId,
      label: Type.Union(
        [
          Type.String({
            pattern: "^[^\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029\\u202a-\\u202e\\u2066-\\u2069]{1,200}$",
          }),
          Type.Null(),
        ],
        { description: "At most 200 characters, none of them a control character. `null` removes it." },
      ),
      idempotencyKey,
    }),
    result: nothing,
    http: { verb: "PUT", path: "/v1/sessions/{sessionId}/entries/{entryId}/label" },
    ...repeatable,
    errors: [...commandErrors, "entry_not_found"],
  },
  "session/listLabels": {
    summary: "The labels of the session's entries, in the order of setting.",
    params: sessionIdOnly,
    result: Type.Object({ labels: Type.Array(EntryLabel), ...cachedFields }, { additionalProperties: false }),
    http: { verb: "GET", path: "/v1/sessions/{sessionId}/labels" },
    ...reads,
    asleep: "file",
  },
  "session/abortRetry": {
    summary: "Aborts pi's retry of a failed request, including the pause before it.",
    params: sessionIdOnly,
    result: nothing,
    http: { verb: "POST", path: "/v1/sessions/{sessionId}/retry/abort" },
    ...changes,
    pi: { command: "abort_retry", asItIs: true },
  },
  "session/bash": {
    summary:
      "Runs a shell command in the session's directory, and answers when it has ended. Its output comes as `bash_execution_update` events, and is in the context of the next prompt. One runs at a time in a session; further ones wait. Cancelling the call ends it.",
    params: params({
      sessionId: SessionId,
      command: Type.String({ minLength: 1, maxLength: 131_072, pattern: "^[^\\u0000]*$" }),
      excludeFromContext: Type.Optional(
        Type.Boolean({ default: false, description: "Keeps the output in the session, but hides it from the model." }),
      ),
      bashId: Type.Optional(
        Type.String({
          pattern: "^[0-9A-Za-z][0-9A-Za-z._-]{0,63}$",
          description: "Identifies its events. Default: a UUIDv7.",
        }),
      ),
      idempotencyKey,
    }),
    result: PiBash,
    http: { verb: "POST", path: "/v1/sessions/{sessionId}/bash" },
    ...repeatable,
    capability: "bash",
    pi: { command: "bash", asItIs: false },
  },
  "session/abortBash": {
    summary: "Ends the running shell command. Waiting ones continue.",
    params: sessionIdOnly,
    result: nothing,
    http: { verb: "POST", path: "/v1/sessions/{sessionId}/bash/abort" },
    ...changes,
    capability: "bash",
    pi: { command: "abort_bash", asItIs: true },
  },
  "session/export": {
    summary:
      "The session as one HTML page, with its system prompt and tools. Starts a pi if the session has none, because only pi knows these.",
    params: sessionIdOnly,
    result: Type.Object({ html: Type.String() }, { additionalProperties: false }),
    http: { verb: "GET", path: "/v1/sessions/{sessionId}/export" },
    ...reads,
    asleep: "wake",
    capability: "bash",
    reads: true,
    errors: commandErrors,
    pi: { command: "export_html", asItIs: false },
  },
  "session/command": {
    summary: "Sends a command of pi's RPC unchanged and returns its data, for commands without a method.",
    params: params({
      sessionId: SessionId,
      command: Type.Object(
        { type: Type.String({ pattern: "^[a-z][a-z0-9_]{0,63}$" }) },
        { additionalProperties: true, description: "pi's command record without `id` (docs/rpc-commands.md of pi)." },
      ),
      confirmShared: Type.Optional(
        Type.Boolean({
          description:
            "Needed for the commands that rewrite the user's shared pi settings (set_steering_mode, set_follow_up_mode, set_auto_retry, set_auto_compaction).",
        }),
      ),
    }),
    result: Type.Object(
      {
        data: Type.Optional(Type.Unknown({ description: "pi's `data`, if any." })),
        deliveries: Type.Optional({
          ...DeliveryEffects,
          description: "With `compact`: the deliveries open before the call, in their state after it.",
        }),
      },
      { additionalProperties: false },
    ),
    http: { verb: "POST", path: "/v1/sessions/{sessionId}/command" },
    scope: "none",
    asleep: "wake",
    capability: "prompt",
    since: "0.1.0",
    errors: [...commandErrors, "forbidden", "session_busy"],
    retry: "never",
    sendsCommand: "command",
  },
} as const satisfies Readonly<Record<string, MethodRow>>;
