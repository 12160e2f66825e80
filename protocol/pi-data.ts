import type { Static } from "typebox";
import { cachedFields } from "./cached.ts";
import { Type } from "./json-schema.ts";

// pi's answers to commands (docs/rpc-commands.md of pi). Newer versions of pi may add fields to each of these.

const open = { additionalProperties: true } as const;

export const PiModel = Type.Object(
  {
    id: Type.String(),
    provider: Type.String(),
    name: Type.Optional(Type.String()),
    api: Type.Optional(Type.String()),
    reasoning: Type.Optional(Type.Boolean({ description: "Whether it supports thinking." })),
    input: Type.Optional(Type.Array(Type.String(), { description: "`text`, `image`." })),
    contextWindow: Type.Optional(Type.Number({ description: "Tokens." })),
    maxTokens: Type.Optional(Type.Number({ description: "Maximum tokens of one answer." })),
    cost: Type.Optional(Type.Object({}, { ...open, description: "US dollars per million tokens of each kind." })),
  },
  { ...open, description: "A model, in pi's format." },
);
export type PiModel = Static<typeof PiModel>;

export const PiState = Type.Object(
  {
    model: Type.Optional(PiModel),
    thinkingLevel: Type.Optional(Type.String()),
    isStreaming: Type.Boolean({
      description: "Whether a run is active, including retries and the pauses between them.",
    }),
    isCompacting: Type.Optional(Type.Boolean()),
    steeringMode: Type.Optional(Type.String()),
    followUpMode: Type.Optional(Type.String()),
    sessionFile: Type.Optional(Type.String()),
    sessionId: Type.Optional(Type.String()),
    sessionName: Type.Optional(Type.String()),
    autoCompactionEnabled: Type.Optional(Type.Boolean()),
    messageCount: Type.Optional(Type.Integer()),
    pendingMessageCount: Type.Optional(Type.Integer({ description: "User messages in pi's queue." })),
    ...cachedFields,
  },
  { ...open, description: "pi's state, in its own format." },
);

const message = Type.Object({ role: Type.String() }, { ...open, description: "See docs/message-types.md of pi." });
export const PiMessages = Type.Object({ messages: Type.Array(message), ...cachedFields }, open);

/** An entry of a session's file. */
export const PiEntry = Type.Object(
  { type: Type.String(), id: Type.String(), parentId: Type.Union([Type.String(), Type.Null()]) },
  { ...open, description: "An entry of the session file (docs/session-format.md of pi)." },
);
const leafId = Type.Union([Type.String(), Type.Null()], { description: "The last entry of the active branch." });
export const PiEntries = Type.Object({ entries: Type.Array(PiEntry), leafId, ...cachedFields }, open);

const treeNode = Type.Object(
  { entry: PiEntry, children: Type.Array(Type.Object({}, { ...open, description: "A node of the same type." })) },
  open,
);
export const PiTree = Type.Object({ tree: Type.Array(treeNode), leafId, ...cachedFields }, open);

export const PiForkMessages = Type.Object(
  { messages: Type.Array(Type.Object({ entryId: Type.String(), text: Type.String() }, open)), ...cachedFields },
  open,
);

export const PiCommandList = Type.Object(
  {
    commands: Type.Array(
      Type.Object(
        {
          name: Type.String({ description: "A prompt that begins with `/` and this name runs it." }),
          description: Type.Optional(Type.String()),
          source: Type.String({ description: "`extension`, `prompt` (a template) or `skill`." }),
        },
        open,
      ),
    ),
    ...cachedFields,
  },
  open,
);

export const PiStats = Type.Object(
  {
    sessionId: Type.Optional(Type.String()),
    sessionFile: Type.Optional(Type.String()),
    userMessages: Type.Integer(),
    assistantMessages: Type.Integer(),
    toolCalls: Type.Integer(),
    toolResults: Type.Integer(),
    totalMessages: Type.Integer(),
    tokens: Type.Object(
      {
        input: Type.Number(),
        output: Type.Number(),
        cacheRead: Type.Number(),
        cacheWrite: Type.Number(),
        total: Type.Number(),
      },
      open,
    ),
    cost: Type.Number({ description: "US dollars." }),
    contextUsage: Type.Optional(
      Type.Object(
        {
          tokens: Type.Union([Type.Number(), Type.Null()]),
          contextWindow: Type.Number(),
          percent: Type.Union([Type.Number(), Type.Null()]),
        },
        { ...open, description: "`null` after a compaction, until the model has answered again." },
      ),
    ),
    ...cachedFields,
  },
  open,
);

export const PiCompaction = Type.Object(
  {
    summary: Type.String(),
    firstKeptEntryId: Type.String(),
    tokensBefore: Type.Number(),
    estimatedTokensAfter: Type.Optional(Type.Number({ description: "An estimate." })),
    usage: Type.Optional(Type.Object({}, { ...open, description: "The usage of the summary." })),
  },
  { ...open, description: "pi's own details of the compaction." },
);

export const PiBash = Type.Object(
  {
    bashId: Type.String({ description: "Events of its output have the id `bash:` followed by this id." }),
    output: Type.String({ description: "The output; only its end if it was truncated." }),
    exitCode: Type.Optional(Type.Integer({ description: "Absent if it was cancelled or killed." })),
    cancelled: Type.Boolean(),
    truncated: Type.Boolean(),
    fullOutputPath: Type.Optional(
      Type.String({ description: "pi's own file with the complete output, if it was truncated." }),
    ),
  },
  open,
);
