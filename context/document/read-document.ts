import type { ContextLimits } from "../../protocol/context-limits.ts";
import { isRecord } from "../../protocol/objects.ts";
import {
  CONTEXT_FORMAT,
  CONTEXT_VERSION,
  type ContextDocument,
  type ContextItem,
  type ContextNode,
  type ContextSource,
} from "./document.ts";
import { contextInvalid, contextTooLarge, quoted, subject } from "./faults.ts";
import { type Loose, measure, utf8Bytes } from "./measure.ts";
import { Place, type Reading } from "./place.ts";
import { callAsItem, type EntryFlaws, type ReadEntry, readEntry } from "./read-entry.ts";
import { decodedBytes } from "./read-parts.ts";
import { ShapeFindings } from "./shape.ts";

/** Nesting levels above the arguments of a call: the document, the nodes, a node, its calls, a call. */
const levelsAboveArguments = 5;
const longestId = 1024;
const base = ["context", "document"] as const;

type Flaws = ReadonlyMap<object, EntryFlaws>;

/** Faults of entries of parsed documents; counted only for selected entries. */
const flawsOfRead = new WeakMap<ContextDocument, Flaws>();

/** Returns the faults of a parsed document by entry; `undefined` for other values. */
export function flawsOf(document: ContextDocument): Flaws | undefined {
  return flawsOfRead.get(document);
}

/** Returns a parsed document unchanged, and parses anything else. */
export function asRead(value: unknown, limits: ContextLimits): ContextDocument {
  return isRecord(value) && flawsOfRead.has(value as object as ContextDocument)
    ? (value as object as ContextDocument)
    : readDocument(value, limits);
}

/**
 * Parses a document from JSON values: aliases are resolved, text becomes a part, unknown fields go to `meta`, missing
 * times are filled in. Nested values that are not interpreted are kept by reference.
 *
 * Throws `invalid_params` (`data.errors`: up to 20 of `{ pointer, expected, got }`), `context_too_large`, and
 * `context_invalid` for faults that cannot be repaired: `duplicate_node`, `unknown_role`, `bad_image`, `bad_arguments`.
 */
export function readDocument(value: unknown, limits: ContextLimits): ContextDocument {
  const findings = new ShapeFindings();
  if (!isRecord(value)) {
    findings.add(base, "an object", value);
    findings.settle();
    throw new TypeError("unreachable");
  }
  const lists = readHead(value, findings);
  checkCount(lists, limits);
  const measured = measure(value, levelsAboveArguments + limits.maxArgumentDepth);
  if (measured.isForeign) findings.add(base, "JSON", "something else");
  const limit = limits.maxDocumentBytes;
  if (measured.bytes > limit) {
    const key = "context.maxDocumentBytes";
    throw contextTooLarge({ what: "The document", unit: "bytes", count: measured.bytes, limit, key });
  }
  const flaws = new Map<object, EntryFlaws>();
  const place = { findings, limits };
  // Only these need a walk over all nodes.
  if (measured.longestText > limits.maxBlockBytes && !measured.isTooDeep) checkAllTexts(lists, place);
  const read =
    lists.nodes === undefined ? readItems(lists.items ?? [], place, flaws) : readNodes(lists.nodes, place, flaws);
  if (measured.isTooDeep) throw tooDeep(levelsAboveArguments + limits.maxArgumentDepth);
  const source = readSource(value["source"], findings);
  const { leafId } = value;
  const hasLeaf = typeof leafId === "string";
  if (!hasLeaf && leafId !== undefined && leafId !== null) findings.add([...base, "leafId"], "a text", leafId);
  findings.settle();
  const document: ContextDocument = {
    format: CONTEXT_FORMAT,
    version: CONTEXT_VERSION,
    ...(source === undefined ? {} : { source }),
    ...(hasLeaf ? { leafId } : {}),
    ...read,
  };
  flawsOfRead.set(document, flaws);
  return document;
}

function checkAllTexts({ nodes, items = [] }: Lists, where: Reading): void {
  const list = nodes ?? items;
  const [field, idField] = nodes === undefined ? ["items", "nodeId"] : ["nodes", "id"];
  for (let index = 0; index < list.length; index += 1) {
    const entry = list[index];
    if (!isRecord(entry)) continue;
    const id = entry[idField];
    const nodeId = typeof id === "string" && id.length <= longestId ? id : undefined;
    checkTexts(entry, new Place(where, [...base, field, index], index, nodeId));
  }
}

interface Lists {
  readonly nodes?: readonly unknown[];
  readonly items?: readonly unknown[];
}

function readHead(value: Loose, findings: ShapeFindings): Lists {
  const { format, version, nodes, items } = value;
  if (format !== CONTEXT_FORMAT) findings.add([...base, "format"], CONTEXT_FORMAT, format);
  if (version !== CONTEXT_VERSION) findings.add([...base, "version"], String(CONTEXT_VERSION), version);
  const hasNodes = nodes !== undefined && nodes !== null;
  const hasItems = items !== undefined && items !== null;
  if (hasNodes && !Array.isArray(nodes)) findings.add([...base, "nodes"], "an array of nodes", nodes);
  if (hasItems && !Array.isArray(items)) findings.add([...base, "items"], "an array of items", items);
  if (hasNodes === hasItems) findings.add(base, "either nodes or items", hasNodes ? "both" : "neither");
  findings.settle();
  return hasNodes ? { nodes: nodes as unknown[] } : { items: items as unknown[] };
}

function checkCount({ nodes, items }: Lists, { maxNodes }: ContextLimits): void {
  const count = (nodes ?? items ?? []).length;
  if (count <= maxNodes) return;
  const unit = nodes === undefined ? "items" : "nodes";
  throw contextTooLarge({ what: "The document", unit, count, limit: maxNodes, key: "context.maxNodes" });
}

function tooDeep(limit: number): Error {
  return contextTooLarge({ what: "The document", unit: "levels or more", count: limit + 1, limit });
}

function readNodes(
  list: readonly unknown[],
  where: Reading,
  flaws: Map<object, EntryFlaws>,
): Pick<ContextDocument, "nodes"> {
  const nodes: ContextNode[] = [];
  const ids = new Set<string>();
  const roots: number[] = [];
  let previous = 0;
  for (let index = 0; index < list.length; index += 1) {
    const raw = list[index];
    const path = [...base, "nodes", index];
    if (!isRecord(raw)) {
      where.findings.add(path, "a node", raw);
      continue;
    }
    const id = readId(raw["id"], [...path, "id"], where);
    if (id === undefined) continue;
    if (ids.has(id)) throw contextInvalid("duplicate_node", `Two nodes have the id ${quoted(id)}.`, id);
    ids.add(id);
    const { parentId = null } = raw;
    if (parentId === null) roots.push(index);
    else if (typeof parentId !== "string") {
      where.findings.add([...path, "parentId"], "a text or null", parentId);
    }
    const place = new Place(where, path, index, id);
    const entry = readEntry(raw, place, ["id", "parentId"], previous);
    previous = entry.fields.timestamp;
    const node: ContextNode = {
      id,
      parentId: typeof parentId === "string" ? parentId : null,
      role: entry.role,
      ...entry.fields,
    };
    nodes.push(node);
    noteFlaws(node, entry, flaws);
  }
  // A single root may omit the field. With several roots, one of them may have lost its parent.
  if (roots.length === 1) return { nodes };
  for (const index of roots) {
    const { parentId } = list[index] as Loose;
    if (parentId === undefined) where.findings.add([...base, "nodes", index, "parentId"], "a text or null", parentId);
  }
  return { nodes };
}

function readId(id: unknown, path: readonly (string | number)[], { findings }: Reading): string | undefined {
  if (typeof id === "string" && id !== "" && utf8Bytes(id) <= longestId) return id;
  findings.add(path, `a text of 1 to ${longestId} bytes`, id);
  return undefined;
}

function readItems(
  list: readonly unknown[],
  where: Reading,
  flaws: Map<object, EntryFlaws>,
): Pick<ContextDocument, "items"> {
  const items: ContextItem[] = [];
  let previous = 0;
  for (let index = 0; index < list.length; index += 1) {
    const raw = list[index];
    const path = [...base, "items", index];
    if (!isRecord(raw)) {
      where.findings.add(path, "an item", raw);
      continue;
    }
    const hasId = raw["nodeId"] !== undefined && raw["nodeId"] !== null;
    const nodeId = hasId ? readId(raw["nodeId"], [...path, "nodeId"], where) : undefined;
    const entry = readEntry(raw, new Place(where, path, index, nodeId), ["nodeId"], previous);
    previous = entry.fields.timestamp;
    const { arguments: _, ...fields } = entry.fields;
    if (entry.role === "toolCall") throw callAsItem(subject({ nodeId }, index), nodeId);
    const item: ContextItem = { role: entry.role, ...(nodeId === undefined ? {} : { nodeId }), ...fields };
    items.push(item);
    noteFlaws(item, entry, flaws);
  }
  return { items };
}

function noteFlaws(entry: object, { flaws }: ReadEntry, all: Map<object, EntryFlaws>): void {
  if (flaws.wrongContent || flaws.badTimestamp) all.set(entry, flaws);
}

function readSource(value: unknown, findings: ShapeFindings): ContextSource | undefined {
  if (value === undefined || value === null) return undefined;
  const path = [...base, "source"];
  if (!isRecord(value)) {
    findings.add(path, "an object", value);
    return undefined;
  }
  const { kind = "unknown", id, exportedAt } = value;
  if (typeof kind !== "string") findings.add([...path, "kind"], "a text", kind);
  if (id !== undefined && typeof id !== "string") findings.add([...path, "id"], "a text", id);
  if (exportedAt !== undefined && typeof exportedAt !== "number") {
    findings.add([...path, "exportedAt"], "a number", exportedAt);
  }
  return { ...value, kind } as ContextSource;
}

/**
 * Checks the length of every text in an entry, including arguments, blocks, signatures, details and meta. Only image
 * data may be longer. Throws `context_too_large`.
 */
function checkTexts(entry: object, place: Place): void {
  const limit = place.limits.maxBlockBytes;
  const open: unknown[] = [entry];
  while (open.length > 0) {
    const value = open.pop();
    if (typeof value === "string") {
      const count = value.length * 3 <= limit ? 0 : utf8Bytes(value);
      if (count > limit)
        throw place.exceeded("A text of", { unit: "bytes", count, limit, key: "context.maxBlockBytes" });
    } else if (Array.isArray(value)) for (const element of value) open.push(element);
    else if (isRecord(value))
      for (const key of Object.keys(value)) if (!isImage(value, key, place)) open.push(value[key]);
  }
}

/** Whether a field is image data within the size limit. */
function isImage({ type, data }: Readonly<Record<string, unknown>>, key: string, { limits }: Place): boolean {
  return key === "data" && type === "image" && typeof data === "string" && decodedBytes(data) <= limits.maxImageBytes;
}
