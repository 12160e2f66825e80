import { cachedFields } from "./cached.ts";
import { DeliveryEffects } from "./delivery.ts";
import { SessionId } from "./ids.ts";
import { Type } from "./json-schema.ts";
import type { MethodRow } from "./method-row.ts";
import { commandErrors, idempotencyKey, params, questionErrors, sessionIdOnly, sessionName } from "./params.ts";
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

const reads = { scope: "none", capability: "observe", since: "0.1.0", errors: questionErrors } as const;
const changes = {
  scope: "none",
  asleep: "wake",
  capability: "prompt",
  since: "0.1.0",
  errors: commandErrors,
} as const;
const repeatable = { ...changes, errors: [...commandErrors, "conflict"] } as const;
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
  },
  "session/getMessages": {
    summary: "The messages that pi has in its context.",
    params: sessionIdOnly,
    result: PiMessages,
    http: { verb: "GET", path: "/v1/sessions/{sessionId}/messages" },
    ...reads,
    asleep: "file",
  },
  "session/getEntries": {
    summary: "The entries of the session file in their order, abandoned branches included.",
    params: params({
      sessionId: SessionId,
      since: Type.Optional(
        Type.String({ minLength: 1, maxLength: 128, description: "Only those behind the entry of this id." }),
      ),
    }),
    result: PiEntries,
    http: { verb: "GET", path: "/v1/sessions/{sessionId}/entries" },
    ...reads,
    asleep: "file",
  },
  "session/getTree": {
    summary:
      "The entries of the session file as a tree, in pi's form. Each entry is two levels of JSON deeper than its parent. With more than 5,000 entries below each other it is `too_large`; `session/getEntries` has them in a list.",
    params: sessionIdOnly,
    result: PiTree,
    http: { verb: "GET", path: "/v1/sessions/{sessionId}/tree" },
    ...reads,
    asleep: "file",
  },
  "session/getForkMessages": {
    summary: "The user's messages that the session can be forked at.",
    params: sessionIdOnly,
    result: PiForkMessages,
    http: { verb: "GET", path: "/v1/sessions/{sessionId}/fork-messages" },
    ...reads,
    asleep: "file",
  },
  "session/getLastText": {
    summary: "The text of the last assistant message.",
    params: sessionIdOnly,
    result: Type.Object(
      {
        text: Type.Union([Type.String(), Type.Null()], { description: "`null` where there is none." }),
        ...cachedFields,
      },
      { additionalProperties: true },
    ),
    http: { verb: "GET", path: "/v1/sessions/{sessionId}/last-text" },
    ...reads,
    asleep: "file",
  },
  "session/getStats": {
    summary: "Tokens, costs, and how full the context is.",
    params: sessionIdOnly,
    result: PiStats,
    http: { verb: "GET", path: "/v1/sessions/{sessionId}/stats" },
    ...reads,
    asleep: "file",
  },
  "session/getCommands": {
    summary: "What a prompt that begins with `/` can run: commands of extensions, prompt templates and skills.",
    params: sessionIdOnly,
    result: PiCommandList,
    http: { verb: "GET", path: "/v1/sessions/{sessionId}/commands" },
    ...reads,
    asleep: "cached",
  },
  "session/getThinkingLevels": {
    summary: "The thinking levels that the session's model knows.",
    params: sessionIdOnly,
    result: Type.Object({ levels: Type.Array(Type.String()), ...cachedFields }, { additionalProperties: true }),
    http: { verb: "GET", path: "/v1/sessions/{sessionId}/thinking-levels" },
    ...reads,
    asleep: "cached",
  },
  "session/setModel": {
    summary: "Gives the session another model, and answers with it. The user's settings stay as they are.",
    params: params({
      sessionId: SessionId,
      provider: Type.String({ minLength: 1, maxLength: 128 }),
      modelId: Type.String({ minLength: 1, maxLength: 256 }),
      idempotencyKey,
    }),
    result: PiModel,
    http: { verb: "PUT", path: "/v1/sessions/{sessionId}/model" },
    ...repeatable,
  },
  "session/cycleModel": {
    summary: "Gives the session the next of the models that are available.",
    params: params({ sessionId: SessionId, idempotencyKey }),
    result: Type.Object(
      {
        changed: Type.Boolean({ description: "Whether there was another model." }),
        model: Type.Optional(PiModel),
        thinkingLevel: Type.Optional(Type.String()),
        isScoped: Type.Optional(
          Type.Boolean({ description: "Whether pi's settings restrict what is cycled through." }),
        ),
      },
      { additionalProperties: true },
    ),
    http: { verb: "POST", path: "/v1/sessions/{sessionId}/model/cycle" },
    ...repeatable,
  },
  "session/setThinkingLevel": {
    summary: "Sets how much the model thinks. Answers with the level that pi has now: a model may know fewer.",
    params: params({ sessionId: SessionId, level: ThinkingLevel, idempotencyKey }),
    result: Type.Object({ level: Type.Optional(Type.String()) }, { additionalProperties: false }),
    http: { verb: "PUT", path: "/v1/sessions/{sessionId}/thinking-level" },
    ...repeatable,
  },
  "session/cycleThinkingLevel": {
    summary: "Sets the next of the thinking levels that the model knows.",
    params: params({ sessionId: SessionId, idempotencyKey }),
    result: Type.Object(
      { changed: Type.Boolean({ description: "Whether the model can think." }), level: Type.Optional(Type.String()) },
      { additionalProperties: true },
    ),
    http: { verb: "POST", path: "/v1/sessions/{sessionId}/thinking-level/cycle" },
    ...repeatable,
  },
  "session/rename": {
    summary: "Names the session, in lists and in pi's own.",
    params: params({ sessionId: SessionId, name: sessionName, idempotencyKey }),
    result: nothing,
    http: { verb: "PUT", path: "/v1/sessions/{sessionId}/name" },
    ...repeatable,
  },
  "session/compact": {
    summary:
      "Replaces what is old in the context by a summary, and answers when it is done. Only while no run is on: pi would abort it. `session/abort` ends it; whoever cancels the call only stops waiting.",
    params: params({
      sessionId: SessionId,
      customInstructions: Type.Optional(
        Type.String({ minLength: 1, maxLength: 65_536, description: "What the summary is to keep." }),
      ),
      idempotencyKey,
    }),
    result: Type.Object({ compaction: PiCompaction, deliveries: DeliveryEffects }, { additionalProperties: false }),
    ...repeatable,
    http: { verb: "POST", path: "/v1/sessions/{sessionId}/compact" },
    scope: "session",
    errors: [...repeatable.errors, "session_busy"],
  },
  "session/navigate": {
    summary:
      "Goes on from another entry of the session's tree, in the same session and the same file. Only while no run is on. With `summarize`, what is left is summed up by the model at the place where the session goes on; `session/abort` ends that.",
    params: params({
      sessionId: SessionId,
      entryId: {
        ...EntryId,
        description:
          "Where the branch shall end. Of a user's or a custom message: before it, so that another can take its place.",
      },
      summarize: Type.Optional(Type.Boolean({ default: false, description: "Sums up the branch that is left." })),
    }),
    result: Navigation,
    http: { verb: "POST", path: "/v1/sessions/{sessionId}/navigate" },
    ...changes,
    scope: "session",
    errors: [...commandErrors, "session_busy", "entry_not_found"],
  },
  "session/setLabel": {
    summary: "Gives an entry of the session's file a label, or removes it. Also during a run.",
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
    errors: [...repeatable.errors, "entry_not_found"],
  },
  "session/listLabels": {
    summary: "The labels of the session's entries, in the order in which they were set.",
    params: sessionIdOnly,
    result: Type.Object({ labels: Type.Array(EntryLabel), ...cachedFields }, { additionalProperties: false }),
    http: { verb: "GET", path: "/v1/sessions/{sessionId}/labels" },
    ...reads,
    asleep: "file",
  },
  "session/abortRetry": {
    summary: "Ends pi's pause before it tries a failed request again, and the trying.",
    params: sessionIdOnly,
    result: nothing,
    http: { verb: "POST", path: "/v1/sessions/{sessionId}/retry/abort" },
    ...changes,
  },
  "session/bash": {
    summary:
      "Runs a shell command in the session's directory, and answers when it has ended. Its output comes as `bash_execution_update` events, and is in the context of the next prompt. One runs at a time in a session; further ones wait. Cancelling the call ends it.",
    params: params({
      sessionId: SessionId,
      command: Type.String({ minLength: 1, maxLength: 131_072, pattern: "^[^\\u0000]*$" }),
      excludeFromContext: Type.Optional(
        Type.Boolean({ default: false, description: "Keeps the output in the session, and from the model." }),
      ),
      bashId: Type.Optional(
        Type.String({
          pattern: "^[0-9A-Za-z][0-9A-Za-z._-]{0,63}$",
          description: "To know its events by. Default: a UUIDv7.",
        }),
      ),
      idempotencyKey,
    }),
    result: PiBash,
    http: { verb: "POST", path: "/v1/sessions/{sessionId}/bash" },
    ...repeatable,
    capability: "bash",
  },
  "session/abortBash": {
    summary: "Ends the shell command that runs. Those that wait go on.",
    params: sessionIdOnly,
    result: nothing,
    http: { verb: "POST", path: "/v1/sessions/{sessionId}/bash/abort" },
    ...changes,
    capability: "bash",
  },
  "session/export": {
    summary:
      "The session as one HTML page, with its system prompt and tools. Starts a pi where the session has none: only a pi knows these.",
    params: sessionIdOnly,
    result: Type.Object({ html: Type.String() }, { additionalProperties: false }),
    http: { verb: "GET", path: "/v1/sessions/{sessionId}/export" },
    ...reads,
    asleep: "wake",
    capability: "bash",
    reads: true,
    errors: commandErrors,
  },
  "session/command": {
    summary: "Sends a command of pi's RPC as it is, and returns its data: one that has no method yet.",
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
        data: Type.Optional(Type.Unknown({ description: "pi's `data`, where it gave some." })),
        deliveries: Type.Optional({
          ...DeliveryEffects,
          description: "With `compact`: the deliveries that were under way before the call, as they are behind it.",
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
  },
} as const satisfies Readonly<Record<string, MethodRow>>;
