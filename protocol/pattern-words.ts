import { extensionPattern, flagNamePattern } from "./session-options.ts";

const visible = "characters of ASCII without spaces";
const wordCharacters = "letters, digits or . _ -, the first a letter or digit";
const noControls = "characters without control characters";

/** What a text must be, by the `pattern` of its schema. Errors say this instead of the pattern. */
export const patternWords: Readonly<Record<string, string>> = {
  "^(?!-)[^\\u0000-\\u001f\\u007f-\\u009f\\ud800-\\udfff]{1,200}$": `be 1 to 200 ${noControls}, the first not a -`,
  "^[^\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029\\u202a-\\u202e\\u2066-\\u2069]{1,200}$": `be 1 to 200 ${noControls}`,
  "^[^\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029\\u202a-\\u202e\\u2066-\\u2069]{1,64}$": `be 1 to 64 ${noControls}`,
  "\\S": "have a character that is not white space",
  "^[^\\u0000]*$": "have no NUL character",
  "^[^\\u0000]{1,256}$": "be 1 to 256 characters, none of them NUL",
  "^[^\\u0000]{1,512}$": "be 1 to 512 characters, none of them NUL",
  "^[^\\u0000]{1,4096}$": "be 1 to 4096 characters, none of them NUL",
  "^/[^\\u0000]{0,4095}$": "be an absolute path of at most 4096 characters",
  "^/[^\\u0000]{0,4089}\\.jsonl$": "be an absolute path of at most 4096 characters that ends in .jsonl",

  "^[0-9A-Za-z]([0-9A-Za-z._-]{0,126}[0-9A-Za-z])?$":
    "be 1 to 128 letters, digits or . _ -, the first and the last a letter or digit",
  "^[0-9A-Za-z][0-9A-Za-z._-]{0,63}$": `be 1 to 64 ${wordCharacters}`,
  "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$": `be 1 to 64 ${wordCharacters}`,
  "^[0-9A-Za-z][0-9A-Za-z._-]{0,127}$": `be 1 to 128 ${wordCharacters}`,
  "^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$": "be 1 to 128 letters, digits or . _ -, the first a letter, digit or _",
  "^[0-9A-Za-z][0-9A-Za-z._:-]{0,127}$": "be 1 to 128 letters, digits or . _ : -, the first a letter or digit",
  "^[0-9A-Za-z][0-9A-Za-z._:-]{7,127}$": "be 8 to 128 letters, digits or . _ : -, the first a letter or digit",
  "^(?!pi-rpcd\\.carrier$)[0-9A-Za-z][0-9A-Za-z._:/-]{0,127}$":
    "be 1 to 128 letters, digits or . _ : / -, the first a letter or digit, and not pi-rpcd.carrier",
  "^[A-Za-z0-9][A-Za-z0-9._/-]{0,63}$": "be 1 to 64 letters, digits or . _ / -, the first a letter or digit",
  "^[A-Za-z0-9][A-Za-z0-9._/-]{0,63}(=[\\s\\S]{0,256})?$":
    "be the name of a label (1 to 64 letters, digits or . _ / -, the first a letter or digit), or name=text",
  "^[0-9A-Za-z_-]{8,64}$": "be 8 to 64 letters, digits or _ -",
  "^[A-Za-z0-9_-]{1,64}$": "be 1 to 64 letters, digits or _ -",
  "^[A-Za-z0-9_.:-]{1,64}$": "be 1 to 64 letters, digits or _ . : -",
  "^[!-~]{1,64}$": `be 1 to 64 ${visible}`,
  "^[!-~]{1,128}$": `be 1 to 128 ${visible}`,
  "^[!-~]{1,1024}$": "be a place that a page of a transcript has named",
  "^(/[\\s\\S]{0,2047})?$": "be a JSON pointer of at most 2048 characters",
  "^[0-9]{1,16}/[0-9A-Za-z._-]{1,128}$": "be `next` of the page before",
  "^[a-z][a-z0-9_]{0,63}$": "be 1 to 64 small letters, digits or _, the first a letter",
  "^b[0-9]{1,9}$": "be the id of a block, such as b3",

  "^[+A-Za-z_][A-Za-z0-9_.*:-]{0,127}$": "be a tool's name or pattern",
  "^[A-Za-z_*][A-Za-z0-9_.*:-]{0,127}$": "be a tool's name or pattern",
  "^[^-\\s\\u0000-\\u001f][^\\s\\u0000-\\u001f]{0,255}$":
    "be 1 to 256 characters without white space, the first not a -",
  "^[^-,\\s\\u0000-\\u001f][^,\\s\\u0000-\\u001f]{0,255}$":
    "be 1 to 256 characters without white space and commas, the first not a -",
  [extensionPattern]:
    "be an absolute path, a package (npm:NAME, git:HOST/PATH, or an address with https, http or ssh), or builtin:NAME",
  [flagNamePattern]:
    "be 1 to 128 letters, digits or . _ : -, the first a letter or digit, and not an option of pi itself",
  "^[^/\\s]{1,128}/[^\\s]{1,256}$": "be a model as provider/id",
  "^(?:100|[0-9]{1,2})(?:\\.[0-9]{1,3})?%$": "be a percentage, such as 80%",
  "^image/[a-z0-9.+-]{1,64}$": "be the type of an image, such as image/png",
  "^[^=\\u0000]{1,256}$": "be a variable's name: 1 to 256 characters, none of them = or NUL",
  "^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$": "be the name of an HTTP header, at most 128 characters",
  "^[\\t\\u0020-\\u007e\\u0080-\\u00ff]*$":
    "be the value of an HTTP header: no line end, and no character above U+00FF",
  "^[Hh][Tt][Tt][Pp][Ss]?://[!-~]+$": "be an address with http or https",
  "^[A-Za-z_][A-Za-z0-9_]{0,127}$": "be a variable's name: 1 to 128 letters, digits or _, the first not a digit",
  "^[^=\\u0000]+$": "be a variable's name, without = and without NUL",
  "^[A-Za-z_][A-Za-z0-9_]{0,127}[*]?$": "be a variable's name, or its beginning and a *",
  "^https?://[^/?#\\s]{1,255}$": "be an origin, such as http://localhost:5173",
  "^[^/?#@\\s,]{1,255}$": "be a host's name, with a port or without",
};
