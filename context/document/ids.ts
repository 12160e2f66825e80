import type { ContextTarget, ModelName } from "./document.ts";

// Names that every service takes, made of those that came.

const longestName = 64;
const acceptedName = /^[A-Za-z0-9_-]{1,64}$/;
/** OpenAI's chat completions take no longer id of a call, and pi cuts there: what tells ids apart must stand before. */
const longestId = 40;
const acceptedCallId = /^[A-Za-z0-9_-]{1,40}$/;
const refused = /[^A-Za-z0-9_-]/g;
/** What a model's own service may have given: it is sent back as it came. OpenAI Responses has two, `call_id|item_id`. */
const ownId = /^[!-~]{1,1024}$/;
const responsesId = /^[A-Za-z0-9_-]{1,64}(?:\|[A-Za-z0-9_-]{0,64})?$/;
const beginsAsWord = /^[A-Za-z_]/;
const hashLength = 8;
/** Leaves room for `-` and seven digits. */
const longestBase = 32;

export function isModel(one: ModelName | undefined, other: ModelName): boolean {
  return one !== undefined && one.api === other.api && one.provider === other.provider && one.id === other.id;
}

export function isAcceptedName(name: string): boolean {
  return acceptedName.test(name);
}

/** Whether every service takes it as the id of a call, and pi gives it to the target's as it is. */
export function isAcceptedId(id: string, target: ContextTarget): boolean {
  return acceptedCallId.test(id) && !(speaksResponses(target) && id.endsWith("_"));
}

/** OpenAI's own, Azure's and those of others. pi takes `_` off the end of the ids that it gives them. */
export function speaksResponses({ api }: Pick<ContextTarget, "api">): boolean {
  return api.includes("responses");
}

/** A call's id that every service takes. Different ids stay different: a changed one gets a hash of what it was. */
export function acceptedId(id: string): string {
  const head = id.slice(0, longestId - hashLength - 1).replace(refused, "_");
  return `${head}_${hash(id)}`;
}

/** Whether every service takes it as the name of a tool; Google's must begin as a word does. */
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

/** Sees to it that no id of a call is given twice. */
export class CallIds {
  readonly #taken = new Set<string>();
  readonly #items = new Set<string>();
  /** By id the last number that was tried, so that many of the same do not cost their square. */
  readonly #tried = new Map<string, number>();
  readonly #splits: boolean;

  constructor(target: ContextTarget) {
    this.#splits = speaksResponses(target);
  }

  /** The id itself where it is new, else with `-2`, `-3`, … */
  take(id: string): string {
    // An id of OpenAI Responses is `call_id|item_id`, and each part must be unique; the second may be left out.
    const [head = id, item] = this.#splits ? id.split("|", 2) : [id];
    if (!this.#taken.has(head)) {
      this.#taken.add(head);
      const isNew = item === undefined || item === "" || !this.#items.has(item);
      if (isNew && item !== undefined) this.#items.add(item);
      return isNew ? id : head;
    }
    // Long ids are cut at one place, and those that are the same then count together: none is tried twice.
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
