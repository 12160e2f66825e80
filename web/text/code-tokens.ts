import hljs from "highlight.js/lib/core";
import bash from "highlight.js/lib/languages/bash";
import cpp from "highlight.js/lib/languages/cpp";
import css from "highlight.js/lib/languages/css";
import diff from "highlight.js/lib/languages/diff";
import dockerfile from "highlight.js/lib/languages/dockerfile";
import go from "highlight.js/lib/languages/go";
import ini from "highlight.js/lib/languages/ini";
import java from "highlight.js/lib/languages/java";
import json from "highlight.js/lib/languages/json";
import python from "highlight.js/lib/languages/python";
import rust from "highlight.js/lib/languages/rust";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";

/** The kinds of parts of a code that have a colour. */
export const tokenKinds = [
  "comment",
  "keyword",
  "string",
  "value",
  "name",
  "attribute",
  "meta",
  "added",
  "removed",
] as const;
export type TokenKind = (typeof tokenKinds)[number];

/** A part of a code, by its places in UTF-16 units. */
export interface Token {
  readonly kind: TokenKind;
  readonly start: number;
  readonly end: number;
}

/** What highlight.js calls them, up to the first dot. Other scopes look as what is around them. */
const kinds: Readonly<Record<string, TokenKind | undefined>> = {
  comment: "comment",
  quote: "comment",
  keyword: "keyword",
  built_in: "keyword",
  type: "keyword",
  name: "keyword",
  "selector-tag": "keyword",
  bullet: "keyword",
  string: "string",
  regexp: "string",
  symbol: "string",
  number: "value",
  literal: "value",
  title: "name",
  section: "name",
  "selector-class": "name",
  "selector-id": "name",
  attr: "attribute",
  attribute: "attribute",
  property: "attribute",
  variable: "attribute",
  "template-variable": "attribute",
  meta: "meta",
  doctag: "meta",
  addition: "added",
  deletion: "removed",
};

/** Some regular expressions take time by the square of a text, so it is read in pieces of about so many characters. */
const pieceChars = 1_024;

/** Gets what highlight.js finds. It makes no HTML. */
class TokenEmitter {
  readonly tokens: Token[] = [];
  length = 0;
  readonly #scopes: string[] = [];

  addText(text: string): void {
    const start = this.length;
    this.length += text.length;
    const kind = this.#kind();
    if (kind !== undefined && text !== "") this.#add({ kind, start, end: this.length });
  }

  openNode(scope: string): void {
    this.#scopes.push(scope);
  }

  closeNode(): void {
    this.#scopes.pop();
  }

  startScope(scope: string): void {
    this.openNode(scope);
  }

  endScope(): void {
    this.closeNode();
  }

  __addSublanguage({ tokens, length }: TokenEmitter): void {
    for (const { kind, start, end } of tokens) this.#add({ kind, start: this.length + start, end: this.length + end });
    this.length += length;
  }

  finalize(): void {}

  toHTML(): string {
    return "";
  }

  /** That of the innermost scope that has one. What is put into a string is no string. */
  #kind(): TokenKind | undefined {
    for (const scope of this.#scopes.toReversed()) {
      if (scope === "subst") return undefined;
      const kind = kinds[scope.split(".", 1)[0] ?? ""];
      if (kind !== undefined) return kind;
    }
    return undefined;
  }

  #add(token: Token): void {
    const last = this.tokens.at(-1);
    if (last?.kind === token.kind && last.end === token.start)
      this.tokens[this.tokens.length - 1] = { ...last, end: token.end };
    else this.tokens.push(token);
  }
}

const languages = { bash, cpp, css, diff, dockerfile, go, ini, java, json, python, rust, typescript, xml, yaml };
for (const [name, language] of Object.entries(languages)) hljs.registerLanguage(name, language);
// That is what a script in HTML is called. TypeScript has all of it.
hljs.registerLanguage("javascript", typescript);
hljs.registerAliases(["js", "jsx", "mjs", "cjs"], { languageName: "javascript" });
hljs.registerAliases(["c", "h"], { languageName: "cpp" });
hljs.registerAliases(["scss", "less"], { languageName: "css" });
hljs.configure({ __emitter: TokenEmitter as never });

/** Whether code in a language of this name, in any case, has tokens. */
export function isKnownLanguage(name: string): boolean {
  return hljs.getLanguage(name) !== undefined;
}

/** The tokens of a code in a known language, in pieces: each takes a few milliseconds at most, whatever the code is. */
export function* tokensOf(code: string, language: string): Generator<readonly Token[], void, undefined> {
  let continuation: unknown;
  for (let from = 0; from < code.length; ) {
    const end = code.lastIndexOf("\n", from + pieceChars - 1) + 1;
    const to = from + pieceChars >= code.length ? code.length : end > from ? end : from + pieceChars;
    // The build makes highlight.js take the end of the piece before as the beginning of this one.
    const options = { language, ignoreIllegals: true, continuation };
    const { _emitter, _top } = hljs.highlight(code.slice(from, to), options);
    const start = from;
    yield (_emitter as unknown as TokenEmitter).tokens.map((token) => ({
      kind: token.kind,
      start: start + token.start,
      end: start + token.end,
    }));
    continuation = _top;
    from = to;
  }
}
