import { h } from "preact";
import { expect, test } from "vitest";
import { blocksOf } from "../../../web/text/blocks.ts";
import { Markdown } from "../../../web/text/markdown.tsx";
import { hostileTexts } from "../../helpers/hostile-texts.ts";
import { elementsIn, type Shown, shown, textOf } from "./elements.ts";

const render = (text: string): readonly (Shown | string)[] => shown(h(Markdown, { blocks: blocksOf(text) }));
const linksIn = (text: string): readonly string[] =>
  elementsIn(render(text)).flatMap(({ name, attributes }) => (name === "a" ? [String(attributes["href"])] : []));

const allowed = new Set(
  "div p h3 h4 h5 h6 pre code blockquote ul ol li table thead tbody tr th td hr br strong em del a span bdi".split(" "),
);
/** Attributes whose value is one of ours, whatever the text says. */
const fixed: Readonly<Record<string, RegExp>> = {
  class: /^(?:markdown|plain|task|task-state|table|align-(?:left|center|right)|link-place|hidden-character)$/,
  dir: /^auto$/,
  scope: /^col$/,
  tabIndex: /^0$/,
  target: /^_blank$/,
  rel: /^noopener noreferrer$/,
  start: /^\d+$/,
  href: /^(?:https?|mailto):[!-~]*$/,
};

test.each(hostileTexts)("makes only elements and attributes of the closed list of $name", ({ text }) => {
  const found = new Set<string>();
  for (const { name, attributes } of elementsIn(render(text))) {
    if (!allowed.has(name)) found.add(name);
    for (const [key, value] of Object.entries(attributes))
      if (value !== undefined && fixed[key]?.test(String(value)) !== true) found.add(`${name} ${key}=${String(value)}`);
  }
  expect([...found]).toEqual([]);
});

test("shows HTML as it was written", () => {
  const html = `<script>alert(1)</script> and <img src=x onerror="a*b*c"> &lt;b&gt; <!-- a *comment* -->`;
  expect(textOf(render(html))).toBe(html.replace("&lt;b&gt;", "<b>"));
  expect(elementsIn(render(html)).map(({ name }) => name)).toEqual(["div", "p"]);
});

test("shows definitions of links, and references to them, as they were written", () => {
  const text = "[a]: https://example.com\n\n[a] and [b][a] and ![c][a]";
  expect(textOf(render(text))).toContain("[a]: https://example.com");
  expect(textOf(render(text))).toContain("[a] and [b][a] and ![c][a]");
  expect(linksIn(text)).toEqual(["https://example.com/"]);
});

test.each([
  ["[x](https://example.com/a?b=1&amp;c=2)", ["https://example.com/a?b=1&c=2"]],
  ["[x](http://example.com)", ["http://example.com/"]],
  ["<mailto:a@example.com> and me@example.com", ["mailto:a@example.com", "mailto:me@example.com"]],
  ["![x](https://example.com/a.png)", ["https://example.com/a.png"]],
  ["[x](javascript:alert) [x](&#106;avascript:alert) [x](JAVASCRIPT&colon;alert)", []],
  ["[x](data:text/html,y) [x](/exchange) [x](#code) [x](//example.com) [x](file:///etc/passwd)", []],
  [`[x](https://example.com/${"a".repeat(3_000)})`, []],
])("links of %s: %j", (text, links) => {
  expect(linksIn(text)).toEqual(links);
});

test("says where a link leads, unless its words are the address", () => {
  expect(textOf(render("[the bank](https://attacker.example/x)"))).toBe("the bank (attacker.example)");
  expect(textOf(render("[https://bank.example/](https://attacker.example/)"))).toBe(
    "https://bank.example/ (attacker.example)",
  );
  expect(textOf(render("https://bank.example@attacker.example/"))).toContain("(attacker.example)");
  expect(textOf(render("[apple](https://\u0430pple.example/)"))).toBe("apple (xn--pple-43d.example)");
  expect(textOf(render("https://example.com/a"))).toBe("https://example.com/a");
  expect(textOf(render("[](https://example.com/a)"))).toBe("example.com");
});

test("makes no picture of Markdown, and no link in a link", () => {
  const elements = elementsIn(
    render("![words](https://example.com/x.png) [![a](https://a.example)](https://b.example)"),
  );
  expect(elements.filter(({ name }) => name === "img")).toEqual([]);
  expect(elements.filter(({ name }) => name === "a")).toHaveLength(2);
  expect(textOf(render("![words](https://example.com/x.png)"))).toBe("Image: words (example.com)");
});

test("reads what people and models write", () => {
  const text =
    "# Title\n\n1. **bold** *em* ~~del~~ `co\u202ede`\n2. two\n   - [x] done\n\n| a | b |\n|:-:|--:|\n| 1 | 2 |\n\n> quote\n\n```ts\nconst a = 1;\n```\n\n---\n";
  const names = elementsIn(render(text)).map(({ name }) => name);
  for (const name of ["h3", "ol", "ul", "strong", "em", "del", "table", "blockquote", "pre", "hr"])
    expect(names).toContain(name);
  expect(textOf(render(text))).toContain("coRLOde");
  expect(textOf(render(text))).toContain("const a = 1;");
});

test("shows what is nested deeper than 16 levels as it was written", () => {
  const quotes = (depth: number): string => `${"> ".repeat(depth)}deep`;
  const depthOf = (text: string): number => elementsIn(render(text)).filter(({ name }) => name === "blockquote").length;
  expect(depthOf(quotes(10))).toBe(10);
  expect(depthOf(quotes(5_000))).toBe(0);
  expect(textOf(render(quotes(5_000)))).toBe(quotes(5_000));
});
