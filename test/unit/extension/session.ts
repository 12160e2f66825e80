import type { SessionEntry, TreeReader } from "../../../extension/pi-types.ts";

type Draft = {
  readonly type: string;
  readonly id: string;
  readonly parentId?: string | null;
  readonly [field: string]: unknown;
};

/** A session of a few entries, each after the previous one. */
export interface FakeSession extends TreeReader {
  leaf: string | undefined;
  add(entry: Draft): void;
  readonly entries: readonly SessionEntry[];
}

export function session(...drafts: readonly Draft[]): FakeSession {
  const entries = new Map<string, SessionEntry>();
  const fake: FakeSession = {
    leaf: undefined,
    add: (draft) => {
      entries.set(draft.id, { parentId: fake.leaf ?? null, ...draft } as unknown as SessionEntry);
      fake.leaf = draft.id;
    },
    get entries() {
      return [...entries.values()];
    },
    getLeafEntry: () => (fake.leaf === undefined ? undefined : entries.get(fake.leaf)),
    getEntry: (id) => entries.get(id),
    getEntries: () => [...entries.values()],
  };
  for (const draft of drafts) fake.add(draft);
  return fake;
}

export const user = (id: string): Draft => ({ type: "message", id, message: { role: "user", content: "Hello." } });
export const assistant = (id: string, stopReason = "stop"): Draft => ({
  type: "message",
  id,
  message: { role: "assistant", content: [], stopReason },
});
export const pushed = (id: string, deliveryId: string): Draft => ({
  type: "custom_message",
  id,
  customType: "test",
  content: "Hello.",
  display: true,
  details: { "pi-rpcd": { deliveryId } },
});
export const compaction = (id: string, firstKeptEntryId: string): Draft => ({
  type: "compaction",
  id,
  summary: "…",
  firstKeptEntryId,
});
