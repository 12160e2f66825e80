import { resolve } from "node:path";
import { messageOf } from "../../../extension/pi-types.ts";
import { smallFile } from "../../small-file.ts";
import { wordsOf } from "./words.ts";

/** Synonyms by word. */
export interface Synonyms {
  /** Returns the stems with a similar meaning, without the given one. */
  of(stem: string): readonly string[];
}

/** Limits of a file: bytes, words, and synonyms of one word. */
const maxBytes = 1_024 * 1_024;
const maxWords = 5_000;
const maxOthers = 64;

/** Words of one line have a similar meaning in requests for tools. */
const groups = `
create add make new open register insert generate
remove delete erase drop clear purge discard clean rid
change update edit modify alter set adjust replace
get fetch read retrieve obtain load download
list show display enumerate view print
find search look locate query discover google
send post tell write say notify inform message ping publish know
start run launch boot execute begin trigger invoke call
stop shut halt end terminate kill
cancel abort call-off revoke
undo revert rollback restore previous return back
copy duplicate clone fork replicate replica instance
move transfer shift transition
join merge combine unite concatenate
cut trim crop split
schedule plan arrange appointment meeting event calendar
person user people member colleague who team
mail email inbox letter message
chat conversation channel room slack
issue bug defect ticket problem task story
error exception crash failure fail failed
picture image photo illustration screenshot
film video clip movie
sound audio recording speech voice
document file text page doc
page website site web browser
internet online web
money cost price spend bill payment pay
currency money euro dollar pound yen franc
refund reimburse reimbursement
invoice bill charge
customer client buyer
cloud aws azure
machine instance server vm computer
container docker pod image
cluster kubernetes k8s
database sql table db postgres
cache redis cached
test check verify audit validate
measure count compute calculate
weather temperature rain warm cold snow sun umbrella forecast
route direction way drive path
place location address city
coordinate position latitude longitude gps
exchange conversion convert
build pipeline ci continuous integration workflow
call use reference invoke usage occur
break fail outage incident down
translate language english german french spanish
resize scale shrink enlarge
vulnerability cve security exploit
library package dependency module
license legal terms
password secret credential key token
alert alarm warning incident outage
mute silence quiet
code source program
rename name
function method class symbol
version release ship rollout deploy deployment
branch commit revision git
review comment remark feedback
share permission allow grant access
assign responsible owner give
fast slow performance latency speed long quick
log line output print
form field input
click press push
type enter fill
capture take snapshot
free available
time hour duration
convert exchange turn
`;

class SynonymTable implements Synonyms {
  readonly #others = new Map<string, Set<string>>();

  of(stem: string): readonly string[] {
    return [...(this.#others.get(stem) ?? [])];
  }

  /** Each word is a synonym of all others. */
  addGroup(words: readonly string[]): void {
    for (const word of words) this.add(word, words);
  }

  add(word: string, others: readonly string[]): void {
    const known = this.#others.get(word) ?? new Set();
    for (const other of others) if (other !== word && known.size < maxOthers) known.add(other);
    if (this.#others.size < maxWords || this.#others.has(word)) this.#others.set(word, known);
  }
}

/** Built-in synonyms. */
export const builtInSynonyms: Synonyms = builtIn();

function builtIn(): SynonymTable {
  const table = new SynonymTable();
  for (const line of groups.trim().split("\n")) table.addGroup(wordsOf(line));
  return table;
}

/** Returns the built-in synonyms and those of a file; only the built-in ones if the file is unreadable. */
export function readSynonyms(path: string | null, cwd: string, failed: (reason: string) => void): Synonyms {
  if (path === null) return builtInSynonyms;
  try {
    return synonymsWith(smallFile(resolve(cwd, path), maxBytes).toString("utf8"));
  } catch (thrown) {
    failed(`dynamicTools.synonyms was not read. ${messageOf(thrown)}`.slice(0, 1_000).toWellFormed());
    return builtInSynonyms;
  }
}

/**
 * Returns the built-in synonyms and those of a file: a JSON object of words, each with a list of synonyms, valid in
 * both directions. Throws if the text has another form.
 */
export function synonymsWith(text: string): Synonyms {
  const given: unknown = JSON.parse(text);
  if (typeof given !== "object" || given === null || Array.isArray(given)) throw new Error("It is not a JSON object.");
  const table = builtIn();
  for (const [word, others] of Object.entries(given).slice(0, maxWords)) {
    if (!Array.isArray(others) || !others.every((other) => typeof other === "string")) {
      throw new Error(`"${word.slice(0, 64)}" has no list of words.`);
    }
    const meant = others.slice(0, maxOthers).flatMap(wordsOf);
    for (const stem of wordsOf(word)) {
      table.add(stem, meant);
      for (const other of meant) table.add(other, [stem]);
    }
  }
  return table;
}
