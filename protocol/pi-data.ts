import type { Static } from "typebox";
import { cachedFields } from "./cached.ts";
import { Type } from "./json-schema.ts";

// What pi answers to its commands (docs/rpc-commands.md of pi). Newer versions of pi may add fields to each of these.

const open = { additionalProperties: true } as const;

export const PiModel = Type.Object(
  {
    id: Type.String(),
    provider: Type.String(),
    name: Type.Optional(Type.String()),
    api: Type.Optional(Type.String()),
    reasoning: Type.Optional(Type.Boolean({ description: "Whether it can think." })),
    input: Type.Optional(Type.Array(Type.String(), { description: "`text`, `image`." })),
    contextWindow: Type.Optional(Type.Number({ description: "Tokens." })),
    maxTokens: Type.Optional(Type.Number({ description: "Tokens of one answer." })),
    cost: Type.Optional(Type.Object({}, { ...open, description: "US dollars for a million tokens of each kind." })),
  },
  { ...open, description: "A model as pi describes it." },
);
export type PiModel = Static<typeof PiModel>;

export const PiState = Type.Object(
  {
    model: Type.Optional(PiModel),
    thinkingLevel: Type.Optional(Type.String()),
    isStreaming: Type.Boolean({ description: "Whether a run is on, retries and pauses between them included." }),
    isCompacting: Type.Optional(Type.Boolean()),
    steeringMode: Type.Optional(Type.String()),
    followUpMode: Type.Optional(Type.String()),
    sessionFile: Type.Optional(Type.String()),
    sessionId: Type.Optional(Type.String()),
    sessionName: Type.Optional(Type.String()),
    autoCompactionEnabled: Type.Optional(Type.Boolean()),
    messageCount: Type.Optional(Type.Integer()),
    pendingMessageCount: Type.Optional(Type.Integer({ description: "Users' messages in pi's queue." })),
    ...cachedFields,
  },
  { ...open, description: "pi's state, in its own words." },
);

const message = Type.Object(
  { role: Type.String() },
  { ...open, description: "docs/message-types.md of pi has its forms." },
);
export const PiMessages = Type.Object({ messages: Type.Array(message), ...cachedFields }, open);

const entry = Type.Object(
  { type: Type.String(), id: Type.String(), parentId: Type.Union([Type.String(), Type.Null()]) },
  { ...open, description: "An entry of the session file (docs/session-format.md of pi)." },
);
const leafId = Type.Union([Type.String(), Type.Null()], { description: "Where the active branch ends." });
export const PiEntries = Type.Object({ entries: Type.Array(entry), leafId, ...cachedFields }, open);

const treeNode = Type.Object(
  { entry, children: Type.Array(Type.Object({}, { ...open, description: "A node as this one." })) },
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
        { ...open, description: "`null` behind a compaction, until the model has answered again." },
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
    usage: Type.Optional(Type.Object({}, { ...open, description: "What the summary has cost." })),
  },
  { ...open, description: "pi's words on the compaction." },
);

export const PiBash = Type.Object(
  {
    bashId: Type.String({ description: "Events of its output have the id `bash:` and this." }),
    output: Type.String({ description: "The end of it where it was truncated." }),
    exitCode: Type.Optional(Type.Integer({ description: "Absent where it was cancelled or killed." })),
    cancelled: Type.Boolean(),
    truncated: Type.Boolean(),
    fullOutputPath: Type.Optional(Type.String({ description: "The whole of a truncated output; pi's own file." })),
  },
  open,
);
