import type { ContextTarget, ModelName } from "./document.ts";

// Converts ids and names to forms that every service accepts.

const longestName = 64;
const acceptedName = /^[A-Za-z0-9_-]{1,64}$/;
/** OpenAI's chat completions accept no longer call id and pi truncates it, so ids must differ before this length. */
const longestId = 40;
const acceptedCallId = /^[A-Za-z0-9_-]{1,40}$/;
const refused = /[^A-Za-z0-9_-]/g;
/**
 * Ids that the target's own service may have issued; sent back unchanged. OpenAI Responses has two, `call_id|item_id`.
 */
const ownId = /^[!-~]{1,1024}$/;
const responsesId = /^[A-Za-z0-9_-]{1,64}(?:\|[A-Za-z0-9_-]{0,64})?$/;
const beginsAsWord = /^[A-Za-z_]/;
const hashLength = 8;
/** Leaves space for `-` and seven digits. */
const longestBase = 32;

export function isModel(one: ModelName | undefined, other: ModelName): boolean {
  return one !== undefined && one.api === other.api && one.provider === other.provider && one.id === other.id;
}

export function isAcceptedName(name: string): boolean {
  return acceptedName.test(name);
}

/** Whether every service accepts the call id, and pi sends it to the target unchanged. */
export function isAcceptedId(id: string, target: ContextTarget): boolean {
  return acceptedCallId.test(id) && !(speaksResponses(target) && id.endsWith("_"));
}

/**
 * Whether the target uses the Responses API of OpenAI, Azure or another provider. pi removes a trailing `_` from ids
 * sent there.
 */
export function speaksResponses({ api }: Pick<ContextTarget, "api">): boolean {
  return api.includes("responses");
}

/**
 * Returns a call id that every service accepts. Different ids stay different: a changed one gets a hash of the
 * original.
 */
export function acceptedId(id: string): string {
  const head = id.slice(0, longestId - hashLength - 1).replace(refused, "_");
  return `${head}_${hash(id)}`;
}

/** Whether every service accepts the tool name; Google requires a letter or underscore at the start. */
export function isAcceptedToolName(name: string, target: ContextTarget): boolean {
  return isAcceptedName(name) && (!isGoogle(target) || beginsAsWord.test(name));
}

export function acceptedToolName(name: string, target: Pick<ContextTarget, "api">): string {
  if (name === "") return "tool";
  const isWord = !isGoogle(target) || beginsAsWord.test(name.replace(refused, "_"));
  return `${isWord ? "" : "_"}${name}`.slice(0, longestName).replace(refused, "_");
}

function isGoogle({ api }: Pick<ContextTarget, "api">): boolean {
  return api.startsWith("google");
}

export function isOwnId(id: string, target: ContextTarget): boolean {
  const { api, provider } = target;
  if (speaksResponses(target)) return responsesId.test(id);
  if (provider === "openai" && id.length > longestId) return false;
  return api === "anthropic-messages" ? isAcceptedName(id) : ownId.test(id);
}

export function isOwnToolName(name: string, target: ContextTarget): boolean {
  const { api } = target;
  if (speaksResponses(target) || api === "anthropic-messages") return isAcceptedName(name);
  return name !== "" && name.length <= 256 && (!isGoogle(target) || beginsAsWord.test(name));
}

/** FNV-1a of 32 bits in hex. */
function hash(text: string): string {
  let value = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) {
    value = Math.imul(value ^ text.charCodeAt(index), 0x01000193);
  }
  return (value >>> 0).toString(16).padStart(hashLength, "0");
}

/** Makes call ids unique. */
export class CallIds {
  readonly #taken = new Set<string>();
  readonly #items = new Set<string>();
  /** Last number tried by id, so that many equal ids do not take quadratic time. */
  readonly #tried = new Map<string, number>();
  readonly #splits: boolean;

  constructor(target: ContextTarget) {
    this.#splits = speaksResponses(target);
  }

  /** Returns the id itself if it is new, otherwise with `-2`, `-3`, … */
  take(id: string): string {
    // An id of OpenAI Responses is `call_id|item_id`, and each part must be unique; the second is optional.
    const [head = id, item] = this.#splits ? id.split("|", 2) : [id];
    if (!this.#taken.has(head)) {
      this.#taken.add(head);
      const isNew = item === undefined || item === "" || !this.#items.has(item);
      if (isNew && item !== undefined) this.#items.add(item);
      return isNew ? id : head;
    }
    // Long ids are cut at the same length and share a counter if they become equal, so no number is tried twice.
    const base = head.slice(0, longestBase);
    for (let number = (this.#tried.get(base) ?? 1) + 1; ; number += 1) {
      const next = `${base}-${number}`;
      if (this.#taken.has(next)) continue;
      this.#tried.set(base, number);
      this.#taken.add(next);
      return next;
    }
  }
}
