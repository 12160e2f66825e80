import type { Static } from "typebox";
import { cachedFields } from "../cached.ts";
import { Type } from "../json-schema.ts";
import { EditPrices } from "../optimisation/report.ts";
import { PruningOptions } from "./options.ts";

const closed = { additionalProperties: false } as const;
const count = (description: string) => Type.Integer({ minimum: 0, description });
const tokens = (description: string) => Type.Integer({ description: `Estimated tokens. ${description}`.trim() });
const usd = (description: string) => Type.Union([Type.Null(), Type.Number()], { description });

const MessageId = Type.String({ pattern: "^m[0-9]{3,9}$", description: "Of a message, as in the context." });
export const BlockId = Type.String({ pattern: "^b[0-9]{1,9}$", description: "Of a block, as in the context." });
const EntryId = Type.String({ minLength: 1, maxLength: 128, description: "Of an entry of the session's file." });
const topic = Type.String({ maxLength: 80, description: "A description of the topic." });

export const PruningMode = Type.Enum(["automatic", "manual"], { description: "`manual`: the user decides." });
export type PruningMode = Static<typeof PruningMode>;

/** Every key, as it holds now. */
export const configurationNow = { ...PruningOptions, description: "Every option with its current value." };

const blockState = {
  state: Type.Enum(["active", "consumed", "inactive", "checkpointed"], {
    description:
      "`consumed`: another block contains it; `inactive`: the user has opened it; `checkpointed`: a compaction has summarised its messages.",
  }),
  parent: Type.Optional({ ...BlockId, description: "The block that contains it." }),
  compactionId: Type.Optional({ ...EntryId, description: "The compaction's entry." }),
};

export const BlockReport = Type.Object(
  {
    id: BlockId,
    topic,
    ...blockState,
    startId: Type.Optional({ ...MessageId, description: "The first message of its range that has an id." }),
    endId: Type.Optional({ ...MessageId, description: "The last message of its range that has an id." }),
    children: Type.Array(BlockId, { maxItems: 1_000, description: "Blocks that it contains." }),
    tokensBefore: tokens("Of its range, at its creation."),
    tokensAfter: tokens("Of the block."),
    isShortened: Type.Boolean({
      description: "Whether the context has only its beginning; `recall` returns all of it.",
    }),
  },
  { ...closed, description: "One block." },
);

/** The answer of `pruning/inspect`. */
export const PruningInspection = Type.Object(
  {
    configuration: configurationNow,
    mode: PruningMode,
    off: Type.Optional(
      Type.String({ maxLength: 1_024, description: "Why the next request is not pruned, although pruning is on." }),
    ),
    window: Type.Union([
      Type.Null(),
      Type.Object(
        {
          tokens: count("Tokens of the model's window."),
          used: count("Estimated tokens of the next request after pruning."),
          max: count("From this size on the model is told to compress."),
          min: count("Below this size the model is not reminded."),
        },
        closed,
      ),
    ]),
    byKind: Type.Record(Type.String(), count("Estimated tokens."), {
      description:
        "Tokens by kind, with the same sum as in `optimisation/inspect`: `system`, `tools`, `user`, `assistant`, `results`, `blocks`, `other`.",
    }),
    messages: Type.Array(
      Type.Object(
        {
          id: MessageId,
          entryId: EntryId,
          role: Type.String({ maxLength: 64 }),
          tokens: tokens("Of the message."),
          block: Type.Optional({ ...BlockId, description: "The active block that replaces it." }),
        },
        closed,
      ),
      { maxItems: 2_000, description: "Messages with an id on the active branch; the newest 2,000." },
    ),
    blocks: Type.Array(BlockReport, { maxItems: 1_000, description: "The newest 1,000, by number." }),
    candidates: Type.Array(
      Type.Object(
        {
          startId: Type.String({ maxLength: 16 }),
          endId: Type.String({ maxLength: 16 }),
          tokens: tokens("Of the range."),
        },
        closed,
      ),
      { maxItems: 16, description: "Ranges that can be compressed now." },
    ),
    ...cachedFields,
  },
  closed,
);
export type PruningInspection = Static<typeof PruningInspection>;

/** The answer of `pruning/stats`. */
export const PruningStats = Type.Object(
  {
    now: tokens("Saved in the next request by pruning."),
    removed: Type.Object(
      { count: count("Removals: outputs, arguments, blocks."), tokens: tokens("Removed by them, each once.") },
      { ...closed, description: "Over the whole life of the session, each removal counted once." },
    ),
    blocks: Type.Array(Type.Object({ id: BlockId, topic, tokens: tokens("Removed at its creation.") }, closed), {
      maxItems: 1_000,
      description: "The newest 1,000.",
    }),
    strategies: Type.Record(
      Type.String(),
      Type.Object({ count: count("Removals."), tokens: tokens("Removed by them, each once.") }, closed),
      { description: "By the strategy's name; `sweep` counts manual ones." },
    ),
    cache: Type.Object(
      {
        misses: count("Requests whose cached prefix was shortened by pruning."),
        tokens: tokens("Read at full price, or written again, because of it."),
        usd: usd("The additional cost. null: the model has no prices."),
      },
      closed,
    ),
    net: Type.Object(
      {
        tokens: tokens("Removed tokens minus tokens lost in the cache. Below 0: pruning cost more than it saved."),
        usd: usd("The same in USD. null: the model has no prices."),
      },
      closed,
    ),
    edits: Type.Optional(EditPrices),
    standing: Type.Object(
      { system: tokens("Of the section of the system prompt."), tool: tokens("Of the tool's definition.") },
      { ...closed, description: "Tokens that pruning adds to each request." },
    ),
    calls: Type.Object(
      { succeeded: count("Calls of `compress` that made blocks."), failed: count("Refused calls.") },
      closed,
    ),
    echoes: count("Ids that the model wrote in its own texts."),
    ...cachedFields,
  },
  closed,
);
export type PruningStats = Static<typeof PruningStats>;

/** The answer of `pruning/export`. */
export const PruningExport = Type.Object(
  {
    v: Type.Literal(1),
    sessionId: Type.String({ maxLength: 256, description: "pi's own id of the session." }),
    mode: PruningMode,
    blocks: Type.Array(
      Type.Object(
        {
          id: BlockId,
          topic,
          ...blockState,
          entryId: { ...EntryId, description: "The entry that has the block." },
          firstEntryId: EntryId,
          lastEntryId: EntryId,
          entryIds: Type.Array(EntryId, { maxItems: 100_000, description: "All entries that it replaces." }),
          children: Type.Array(BlockId, { maxItems: 1_000, description: "Blocks that it contains." }),
          text: Type.String({ description: "The complete text, including contained blocks." }),
          tokensBefore: tokens("Of its range, at its creation."),
          tokensAfter: tokens("Of the block."),
        },
        closed,
      ),
      { maxItems: 10_000 },
    ),
    ids: Type.Record(Type.String(), EntryId, { description: "Entries by the ids of their messages." }),
  },
  closed,
);
export type PruningExport = Static<typeof PruningExport>;

/** The answer of a call that changes the context. */
export const PruningChange = Type.Object(
  {
    state: Type.Enum(["done", "waiting", "asked"], {
      description:
        "`waiting`: done at the run's next boundary, followed by a notification. `asked`: the model was asked to do it.",
    }),
    blocks: Type.Array(
      Type.Object(
        {
          id: BlockId,
          state: blockState.state,
          startId: Type.Optional(Type.String({ maxLength: 16 })),
          endId: Type.Optional(Type.String({ maxLength: 16 })),
          tokensBefore: tokens("Of its range."),
          tokensAfter: tokens("Of the block."),
        },
        closed,
      ),
      { maxItems: 1_000, description: "Created or changed blocks." },
    ),
    pruned: Type.Array(
      Type.Object(
        {
          recallId: Type.Optional(
            Type.String({ maxLength: 16, description: "The id with which `recall` returns the complete output." }),
          ),
          entryId: EntryId,
          tool: Type.String({ maxLength: 256 }),
          strategy: Type.String({ maxLength: 64 }),
          tokens: tokens("That went."),
        },
        closed,
      ),
      { maxItems: 1_000, description: "Outputs and arguments that were removed from the context." },
    ),
    tokens: tokens("Saved in the next request; below 0: added."),
    notes: Type.Array(Type.String({ maxLength: 1_024 }), {
      maxItems: 64,
      description: "Differences from the request: widened ranges, added placeholders.",
    }),
  },
  closed,
);
export type PruningChange = Static<typeof PruningChange>;
