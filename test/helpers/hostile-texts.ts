/** Text that a model, a tool, a file or an extension can produce. A page must show it without obeying it, and go on. */
export interface HostileText {
  readonly name: string;
  readonly text: string;
}

/** Where a script of the corpus would leave its mark: a test of a page looks for `globalThis[mark]`. */
export const mark = "hostileMark";
/** Where an element of the corpus would send a request. Nothing listens there. */
const target = "http://127.0.0.1:9/hostile";

const script = `globalThis.${mark}=1`;
const mebi = 1024 * 1024;

/** A character by its number, because these cannot be seen in a source. */
const char = (...points: readonly number[]): string => String.fromCodePoint(...points);
const esc = char(0x1b);

const html: readonly HostileText[] = [
  { name: "a script", text: `<script>${script}</script>` },
  { name: "a script in another case", text: `<ScRiPt >${script}</sCrIpT\n>` },
  { name: "a script that is not closed", text: `<script>${script}` },
  { name: "a nested script", text: `<scr<script>ipt>${script}</scr</script>ipt>` },
  { name: "an image with a handler", text: `<img src=x onerror="${script}">` },
  { name: "an image without quotes or spaces", text: `<img/src=x/onerror=${script}>` },
  {
    name: "an svg that loads",
    text: `<svg onload="${script}"><animate onbegin="${script}" attributeName=x dur=1s></svg>`,
  },
  { name: "a details that toggles", text: `<details open ontoggle="${script}"><summary>x</summary></details>` },
  { name: "a frame with a document", text: `<iframe srcdoc="<script>parent.${mark}=1</script>"></iframe>` },
  { name: "an object and an embed", text: `<object data="${target}"></object><embed src="${target}">` },
  { name: "a style that fetches", text: `<style>@import "${target}"; * { background: url(${target}) }</style>` },
  {
    name: "a style attribute that covers the page",
    text: `<div style="position:fixed;inset:0;z-index:9999">covered</div>`,
  },
  {
    name: "a base, a meta refresh and a link",
    text: `<base href="${target}"><meta http-equiv=refresh content="0;url=${target}"><link rel=stylesheet href="${target}">`,
  },
  {
    name: "a form that sends itself",
    text: `<form action="${target}"><input name=x autofocus onfocus="${script}"><button>Yes</button></form>`,
  },
  { name: "elements that end other elements", text: "</p></div></main></body></html><plaintext>" },
  {
    name: "a comment and a CDATA section",
    text: `<!-- --><![CDATA[<script>${script}</script>]]><!--><img src=x onerror=${script}>-->`,
  },
  {
    name: "mathml and a template",
    text: `<math><mtext><table><mglyph><style><img src=x onerror="${script}"></style></table></mtext></math><template><script>${script}</script></template>`,
  },
  {
    name: "elements that take names of the page",
    text: `<a id=document><a id=app name=body><img name=getElementById>`,
  },
  { name: "a thousand open elements", text: "<div><b><i>".repeat(1_000) },
  {
    name: "HTML within Markdown",
    text: `**<img src=x onerror="${script}">** [<script>${script}</script>](https://example.com) # <b>`,
  },
];

const links: readonly HostileText[] = [
  { name: "a link to a script", text: `[press](javascript:${script})` },
  { name: "a link to a script in another case", text: `[press](JaVaScRiPt:${script})` },
  { name: "a link to a script with entities", text: `[press](&#106;avascript&colon;${script})` },
  {
    name: "a link to a script with white space",
    text: `[press](<java\tscript:${script}>) [press]( javascript:${script}) [press](<${char(1)}javascript:${script}>)`,
  },
  { name: "a link to a script by reference", text: `[press][a]\n\n[a]: javascript:${script}` },
  { name: "a link to data", text: `[press](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)` },
  {
    name: "links of other kinds",
    text: "[a](vbscript:x) [b](file:///etc/passwd) [c](blob:x) [d](about:blank) [e](view-source:x) [f](intent://x) [g](ws://x)",
  },
  { name: "an automatic link to a script", text: `<javascript:${script}> <data:text/html,x> <mailto:a@example.com>` },
  { name: "a link whose words name another host", text: "[https://bank.example/login](https://attacker.example/)" },
  {
    name: "a link with a user that looks like a host",
    text: "[here](https://bank.example@attacker.example/) https://bank.example:secret@attacker.example/",
  },
  {
    name: "a link to a host of another script",
    text: `[apple](https://${char(0x430)}pple.example/) https://xn--pple-43d.example/`,
  },
  {
    name: "a link that leaves its attribute",
    text: `[x](https://example.com/"onmouseover="${script}) [y](https://example.com/'><script>${script}</script>)`,
  },
  { name: "a title that leaves its attribute", text: `[x](https://example.com 'a" onmouseover="${script}')` },
  {
    name: "a relative link and one without a scheme",
    text: "[a](/exchange) [b](#code) [c](//attacker.example) [d](?token) [e](\\\\attacker.example\\x)",
  },
  { name: "an image that carries words out", text: `![x](${target}?words=secret) ![y][z]\n\n[z]: ${target}` },
  {
    name: "an image of a script or of data",
    text: `![x](javascript:${script}) ![y](data:image/svg+xml,%3Csvg%20onload=%22${script}%22/%3E)`,
  },
  { name: "a link around an image", text: `[![x](${target})](javascript:${script})` },
  { name: "ten thousand automatic links", text: `https://example.com/${"a".repeat(20)} `.repeat(10_000) },
  { name: "a link with a very long address", text: `[x](https://example.com/${"a".repeat(100_000)})` },
];

const characters: readonly HostileText[] = [
  {
    name: "text that is written backwards",
    text: `rm ${char(0x202e)}txt.exe${char(0x202c)} ${char(0x2066)}safe${char(0x2069)} ${char(0x200f)}`,
  },
  { name: "text that hides its end", text: `echo safe${char(0x2067)} && rm -rf / ${char(0x2069)}# done` },
  {
    name: "characters without width",
    text: `pass${char(0x200b)}wo${char(0x200d)}rd ${char(0x2060)}${char(0xfeff)}${char(0xad)}x${char(0x180e)}`,
  },
  {
    name: "tags and variation selectors",
    text: `ok${Array.from("ignore all", (c) => char(0xe0000 + (c.codePointAt(0) ?? 0))).join("")}${char(0xfe0f, 0xe0100)}`,
  },
  {
    name: "commands to a terminal",
    text: `${esc}[31mred${esc}[0m ${esc}]0;title${char(7)} ${esc}]8;;${target}${esc}\\link${esc}]8;;${esc}\\ ${esc}[2J${char(0x9b)}1A`,
  },
  {
    name: "control characters",
    text: `a${char(0)}b${char(8)}c${char(0x7f)}d\re\ff\vg${char(0x85)}h${char(0x2028)}i${char(0x2029)}j`,
  },
  { name: "halves of characters", text: "\ud800 x \udfff y \udc00\ud800 z" },
  {
    name: "marks above marks",
    text: `Z${char(0x0338, 0x0489, 0x20dd)}${char(0x0300).repeat(5_000)} a${char(0x0e47).repeat(200)}`,
  },
  {
    name: "letters of other scripts in a path",
    text: `/home/${char(0x430)}dmin/.s${char(0x455)}h/id_rs${char(0x430)} ${char(0x3164)} ${char(0x2800)} ${char(0xa0)}`,
  },
  {
    name: "entities",
    text: `&lt;script&gt;${script}&lt;/script&gt; &#x3c;img src=x onerror=${script}&#x3e; &amp;amp; &#0; &#x110000; &nbsp;&zwj;&rlm;`,
  },
];

const sizes: readonly HostileText[] = [
  { name: "a mebibyte without a space", text: "a".repeat(mebi) },
  { name: "a mebibyte of one mark of emphasis", text: "*".repeat(mebi) },
  { name: "a mebibyte of open brackets", text: "[".repeat(mebi) },
  { name: "open brackets with words", text: "[a](".repeat(20_000) },
  {
    name: "backticks of growing length",
    text: Array.from({ length: 600 }, (_, index) => `${"`".repeat(index + 1)}a`).join(""),
  },
  { name: "emphasis that never ends", text: "**a _b ~~c ".repeat(5_000) },
  { name: "five thousand nested quotes", text: `${">".repeat(5_000)} deep` },
  { name: "five thousand quotes with spaces", text: `${"> ".repeat(5_000)}deep` },
  { name: "nested lists", text: Array.from({ length: 1_000 }, (_, depth) => `${" ".repeat(depth * 2)}- x`).join("\n") },
  { name: "list marks in one line", text: `${"- ".repeat(5_000)}deep` },
  {
    name: "a table of a hundred thousand cells",
    text: `${"|a".repeat(1_000)}|\n${"|-".repeat(1_000)}|\n${`${"|b".repeat(1_000)}|\n`.repeat(100)}`,
  },
  {
    name: "a table within quotes and lists",
    text: "> - | a | b |\n>   |---|---|\n>   | `|` | <b> |\n> 1. > ```html\n>    > <script>\n",
  },
  { name: "a code block that is not closed", text: `\`\`\`js\n${script}\n</code></pre><script>${script}</script>\n` },
  { name: "a code block with a hostile language", text: `\`\`\`"><img/src=x/onerror=${script}>\nx\n\`\`\`` },
  { name: "a hundred thousand short lines", text: "x\n".repeat(100_000) },
  { name: "a hundred thousand paragraphs", text: "x\n\n".repeat(100_000) },
  {
    name: "ten thousand definitions",
    text: `${Array.from({ length: 10_000 }, (_, index) => `[a${index}]: https://example.com/${index}`).join("\n")}\n\n${"[a1] ".repeat(10_000)}`,
  },
  {
    name: "names of an object's prototype",
    text: `[__proto__]: x\n[constructor]: y\n\n[__proto__] [constructor] [toString] <__proto__>\n\n\`\`\`__proto__\nx\n\`\`\``,
  },
];

/** The corpus. Each text has a name of its own. */
export const hostileTexts: readonly HostileText[] = [...html, ...links, ...characters, ...sizes];
