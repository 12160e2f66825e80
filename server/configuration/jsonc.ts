import {
  findNodeAtLocation,
  getNodeValue,
  type Node,
  type ParseError,
  parseTree,
  printParseErrorCode,
} from "jsonc-parser";

/** Why a text is not valid JSON with comments, or repeats a key. */
export class JsoncError extends Error {
  override readonly name = "JsoncError";
}

/** JSON with comments, with the position of every value. */
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
      const what = error === undefined ? "The file is empty" : printParseErrorCode(error.error);
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

  /** The value at a path of keys, and its line. */
  at(path: readonly string[]): { readonly value: unknown; readonly line: number } | undefined {
    const node = findNodeAtLocation(this.#tree, [...path]);
    return node === undefined ? undefined : { value: getNodeValue(node), line: lineAt(this.#text, node.offset) };
  }

  /** The line of a JSON pointer's target, or of the last existing node on the path to it. */
  lineOf(pointer: string): number {
    return lineAt(this.#text, nodeAt(this.#tree, pointer).offset);
  }
}

/**
 * A key that is repeated in one object, or that is not an ordinary property: one of the values would be lost
 * silently.
 */
function repeatedKey(
  node: Node,
): { readonly value: unknown; readonly offset: number; readonly why: string } | undefined {
  if (node.type === "object") {
    const seen = new Set<unknown>();
    for (const { children: [key] = [] } of node.children ?? []) {
      if (key === undefined) continue;
      if (key.value === "__proto__") return { value: key.value, offset: key.offset, why: "is not a known parameter" };
      if (seen.has(key.value)) return { value: key.value, offset: key.offset, why: "is repeated" };
      seen.add(key.value);
    }
  }
  for (const child of node.children ?? []) {
    const found = repeatedKey(child);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The node at a JSON pointer, or the last existing one on the path to it. */
function nodeAt(tree: Node, pointer: string): Node {
  const words = pointer
    .split("/")
    .slice(1)
    .map((word) => word.replaceAll("~1", "/").replaceAll("~0", "~"));
  for (let end = words.length; end > 0; end -= 1) {
    const path = words.slice(0, end);
    const node = findNodeAtLocation(tree, path) ?? findNodeAtLocation(tree, path.map(asIndex));
    // People look for the line of the key.
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
