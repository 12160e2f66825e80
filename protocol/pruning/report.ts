import type { Static } from "typebox";
import { cachedFields } from "../cached.ts";
import { Type } from "../json-schema.ts";
import { PruningOptions } from "./options.ts";

const closed = { additionalProperties: false } as const;
const count = (description: string) => Type.Integer({ minimum: 0, description });
const tokens = (description: string) => Type.Integer({ description: `Estimated tokens. ${description}`.trim() });
const usd = (description: string) => Type.Union([Type.Null(), Type.Number()], { description });

const MessageId = Type.String({ pattern: "^m[0-9]{3,9}$", description: "Of a message, as in the context." });
export const BlockId = Type.String({ pattern: "^b[0-9]{1,9}$", description: "Of a block, as in the context." });
const EntryId = Type.String({ minLength: 1, maxLength: 128, description: "Of an entry of the session's file." });
const topic = Type.String({ maxLength: 80, description: "What it is about." });

export const PruningMode = Type.Enum(["automatic", "manual"], { description: "`manual`: the user decides." });
export type PruningMode = Static<typeof PruningMode>;

/** Every key, as it holds now. */
export const configurationNow = { ...PruningOptions, description: "Every key, as it holds now." };

const blockState = {
  state: Type.Enum(["active", "consumed", "inactive", "checkpointed"], {
    description:
      "`consumed`: another block has taken it in; `inactive`: the user has opened it; `checkpointed`: a compaction has taken its messages.",
  }),
  parent: Type.Optional({ ...BlockId, description: "The block that has taken it in." }),
  compactionId: Type.Optional({ ...EntryId, description: "The compaction's entry." }),
};

export const BlockReport = Type.Object(
  {
    id: BlockId,
    topic,
    ...blockState,
    startId: Type.Optional({ ...MessageId, description: "The first message of its range that has an id." }),
    endId: Type.Optional({ ...MessageId, description: "The last one." }),
    children: Type.Array(BlockId, { maxItems: 1_000, description: "Blocks that it has taken in." }),
    tokensBefore: tokens("Of its range, when it was made."),
    tokensAfter: tokens("Of the block."),
    isShortened: Type.Boolean({ description: "Whether the context has its beginning alone; `recall` has all of it." }),
  },
  { ...closed, description: "One block." },
);

/** What `pruning/inspect` answers. */
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
          used: count("Estimated tokens of the next request, as it is pruned."),
          max: count("From here on the model is told to compress."),
          min: count("Below it the model is not reminded."),
        },
        closed,
      ),
    ]),
    byKind: Type.Record(Type.String(), count("Estimated tokens."), {
      description: "What fills it: `system`, `tools`, `user`, `assistant`, `results`, `blocks`, `other`.",
    }),
    messages: Type.Array(
      Type.Object(
        {
          id: MessageId,
          entryId: EntryId,
          role: Type.String({ maxLength: 64 }),
          tokens: tokens("Of the message."),
          block: Type.Optional({ ...BlockId, description: "The active block that stands for it." }),
        },
        closed,
      ),
      { maxItems: 2_000, description: "Those on the active branch that have an id; the newest 2,000." },
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
      { maxItems: 16, description: "Ranges that could be compressed now." },
    ),
    ...cachedFields,
  },
  closed,
);
export type PruningInspection = Static<typeof PruningInspection>;

/** What `pruning/stats` answers. */
export const PruningStats = Type.Object(
  {
    now: tokens("That the next request has less for pruning."),
    removed: Type.Object(
      { count: count("Removals: outputs, arguments, blocks."), tokens: tokens("That they took out, each once.") },
      { ...closed, description: "Over the whole life of the session, each removal counted once." },
    ),
    blocks: Type.Array(
      Type.Object({ id: BlockId, topic, tokens: tokens("That it took out when it was made.") }, closed),
      { maxItems: 1_000, description: "The newest 1,000." },
    ),
    strategies: Type.Record(
      Type.String(),
      Type.Object({ count: count("Removals."), tokens: tokens("That they took out, each once.") }, closed),
      { description: "By the strategy's name; `sweep` are those that the user asked for." },
    ),
    cache: Type.Object(
      {
        misses: count("Requests whose cached prefix pruning has shortened."),
        tokens: tokens("That were read at full price, or written anew, for it."),
        usd: usd("What that cost. null: the model has no prices."),
      },
      closed,
    ),
    net: Type.Object(
      {
        tokens: tokens("Removed, less what the cache lost. Below 0: it has cost more than it has saved."),
        usd: usd("The same. null: the model has no prices."),
      },
      closed,
    ),
    standing: Type.Object(
      { system: tokens("Of the section of the system prompt."), tool: tokens("Of the tool's definition.") },
      { ...closed, description: "What pruning adds to each request." },
    ),
    calls: Type.Object(
      { succeeded: count("Calls of `compress` that made blocks."), failed: count("Calls that were refused.") },
      closed,
    ),
    echoes: count("Ids that the model wrote into its own texts."),
    ...cachedFields,
  },
  closed,
);
export type PruningStats = Static<typeof PruningStats>;

/** What `pruning/export` answers. */
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
          entryIds: Type.Array(EntryId, { maxItems: 100_000, description: "All entries that it stands for." }),
          children: Type.Array(BlockId, { maxItems: 1_000, description: "Blocks that it has taken in." }),
          text: Type.String({ description: "All of it, with the blocks that it has taken in." }),
          tokensBefore: tokens("Of its range, when it was made."),
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

/** What a call that changes the context answers. */
export const PruningChange = Type.Object(
  {
    state: Type.Enum(["done", "waiting", "asked"], {
      description:
        "`waiting`: it is done at the run's next boundary; what it comes to is told then. `asked`: the model was asked.",
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
      { maxItems: 1_000, description: "That were made, or have changed." },
    ),
    pruned: Type.Array(
      Type.Object(
        {
          recallId: Type.Optional(Type.String({ maxLength: 16, description: "By which `recall` has the whole." })),
          entryId: EntryId,
          tool: Type.String({ maxLength: 256 }),
          strategy: Type.String({ maxLength: 64 }),
          tokens: tokens("That went."),
        },
        closed,
      ),
      { maxItems: 1_000, description: "Outputs and arguments that have left the context." },
    ),
    tokens: tokens("That the next request has less; below 0: more."),
    notes: Type.Array(Type.String({ maxLength: 1_024 }), {
      maxItems: 64,
      description: "What differs from what was asked for: ranges that were widened, placeholders that were added.",
    }),
  },
  closed,
);
export type PruningChange = Static<typeof PruningChange>;
