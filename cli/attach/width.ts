const zero = /^[\p{Mn}\p{Me}\p{Cf}\u1160-\u11ff]$/u;
const wide =
  /^[\p{Emoji_Presentation}\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1f64f}\u{1f900}-\u{1f9ff}\u{20000}-\u{3fffd}]$/u;

/** Returns how many columns of a terminal a code point takes. */
export function widthOf(character: string): number {
  if (character < "\u0300") return 1;
  if (zero.test(character)) return 0;
  return wide.test(character) ? 2 : 1;
}

export function textWidth(text: string): number {
  let width = 0;
  for (const character of text) width += widthOf(character);
  return width;
}
