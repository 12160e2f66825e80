// Normalizes the words of names, descriptions and queries for comparison.

const stopWords = new Set(
  (
    "a about above after again all am an and any are as at be because been before being below between both but by can could " +
    "did do does doing down during each few for from further had has have having he her here hers him his how i if in into " +
    "is it its itself just let me more most my need now of off on once only or other our out over own please same she should " +
    "so some such than that the their them then there these they this those through to too under until up us use very want " +
    "was we were what when where which while who whom why will with would you your"
  ).split(" "),
);

/** Maximum characters to read, because a description can have any size. */
const maxCharacters = 20_000;

/** Returns the stems of a text in order, without stop words. Identifiers are split into words. */
export function wordsOf(text: string): string[] {
  const parts = text
    .slice(0, maxCharacters)
    .normalize("NFKC")
    .replace(/([\p{Ll}\p{N}])(\p{Lu})/gu, "$1 $2")
    .replace(/(\p{Lu})(\p{Lu}\p{Ll})/gu, "$1 $2")
    .toLowerCase()
    .split(/[^\p{L}\p{M}\p{N}]+/u);
  return parts.filter((part) => part !== "" && !stopWords.has(part)).map(stemOf);
}

/** Irregular forms. */
const irregular = new Map(
  (
    "wrote:write written:write sent:send spent:spend ran:run made:make found:find gave:give given:give told:tell began:begin " +
    "broke:break broken:break paid:pay took:take taken:take said:say saw:see seen:see built:build bought:buy sold:sell kept:keep " +
    "held:hold drew:draw drawn:draw chose:choose chosen:choose stole:steal spoke:speak spoken:speak knew:know known:know " +
    "people:person men:man women:woman children:child indices:index"
  )
    .split(" ")
    .map((pair) => pair.split(":") as [string, string]),
);

const doubled = /([bdfglmnprt])\1$/;

/** Removes the ending of an English word. Words of other languages match as a whole. */
function stemOf(word: string): string {
  if (word.length < 4 || !/^[a-z]+$/.test(word)) return word;
  let stem = irregular.get(word) ?? word;
  if (stem.endsWith("ies") && stem.length > 4) stem = `${stem.slice(0, -3)}y`;
  else if (/(?:ch|sh|ss|x|z)es$/.test(stem)) stem = stem.slice(0, -2);
  else if (/[^su]s$/.test(stem)) stem = stem.slice(0, -1);
  if (stem.endsWith("ing") && stem.length > 5) stem = stem.slice(0, -3).replace(doubled, "$1");
  else if (stem.endsWith("ied") && stem.length > 4) stem = `${stem.slice(0, -3)}y`;
  else if (stem.endsWith("ed") && stem.length > 4) stem = stem.slice(0, -2).replace(doubled, "$1");
  else if (stem.endsWith("ation") && stem.length > 7) stem = stem.slice(0, -3);
  else if (stem.endsWith("ly") && stem.length > 5) stem = stem.slice(0, -2);
  return stem.endsWith("e") && stem.length > 3 ? stem.slice(0, -1) : stem;
}
