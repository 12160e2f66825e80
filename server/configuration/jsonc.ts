import {
  findNodeAtLocation,
  getNodeValue,
  type Node,
  type ParseError,
  parseTree,
  printParseErrorCode,
} from "jsonc-parser";

/** Why a text is no JSON with comments, or none that says each thing once. */
export class JsoncError extends Error {
  override readonly name = "JsoncError";
}

/** JSON with comments, and where in it everything stands. */
export class Jsonc {
  readonly value: unknown;
  readonly #text: string;
  readonly #tree: Node;

  private constructor(text: string, tree: Node) {
    this.#text = text;
    this.#tree = tree;
    this.value = getNodeValue(tree);
  }

  /** Throws a {@link JsoncError}. */
  static parse(text: string): Jsonc {
    const errors: ParseError[] = [];
    const tree = parseTree(text, errors, { allowTrailingComma: true, disallowComments: false });
    const [error] = errors;
    if (error !== undefined || tree === undefined) {
      const what = error === undefined ? "it is empty" : printParseErrorCode(error.error);
      throw new JsoncError(`is not JSON: line ${lineAt(text, error?.offset ?? 0)}: ${what}`);
    }
    const doubled = repeatedKey(tree);
    if (doubled !== undefined) {
      throw new JsoncError(
        `has mistakes: line ${lineAt(text, doubled.offset)}: "${String(doubled.value)}" ${doubled.why}`,
      );
    }
    return new Jsonc(text, tree);
  }

  /** What stands at a path of keys, and in which line. */
  at(path: readonly string[]): { readonly value: unknown; readonly line: number } | undefined {
    const node = findNodeAtLocation(this.#tree, [...path]);
    return node === undefined ? undefined : { value: getNodeValue(node), line: lineAt(this.#text, node.offset) };
  }

  /** The line of what a JSON pointer names, else of the last thing on the way to it. */
  lineOf(pointer: string): number {
    return lineAt(this.#text, nodeAt(this.#tree, pointer).offset);
  }
}

/** A key that stands twice in one object, or that names no property: one of them would be lost without a word. */
function repeatedKey(
  node: Node,
): { readonly value: unknown; readonly offset: number; readonly why: string } | undefined {
  if (node.type === "object") {
    const seen = new Set<unknown>();
    for (const { children: [key] = [] } of node.children ?? []) {
      if (key === undefined) continue;
      if (key.value === "__proto__") return { value: key.value, offset: key.offset, why: "is not a known parameter" };
      if (seen.has(key.value)) return { value: key.value, offset: key.offset, why: "is there twice" };
      seen.add(key.value);
    }
  }
  for (const child of node.children ?? []) {
    const found = repeatedKey(child);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The node that a JSON pointer names, else the last one on the way to it. */
function nodeAt(tree: Node, pointer: string): Node {
  const words = pointer
    .split("/")
    .slice(1)
    .map((word) => word.replaceAll("~1", "/").replaceAll("~0", "~"));
  for (let end = words.length; end > 0; end -= 1) {
    const path = words.slice(0, end);
    const node = findNodeAtLocation(tree, path) ?? findNodeAtLocation(tree, path.map(asIndex));
    // What a person looks for is the line of the key.
    if (node !== undefined) return node.parent?.type === "property" ? node.parent : node;
  }
  return tree;
}

function asIndex(word: string): string | number {
  return /^\d+$/.test(word) ? Number(word) : word;
}

function lineAt(text: string, offset: number): number {
  return text.slice(0, offset).split("\n").length;
}
