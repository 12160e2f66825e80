import type { PermissionOption } from "@agentclientprotocol/sdk";

const rejects = new Set(["no", "not", "don't", "don’t", "never", "deny", "reject", "block", "cancel"]);
const permits = new Set(["yes", "ok", "okay", "allow", "accept", "approve", "permit", "always", "once"]);

/** The options of a choice as permissions: clients show them by their kinds. */
export function permissionOptions(texts: readonly string[]): PermissionOption[] {
  return texts.map((name, index) => ({ optionId: String(index), name, kind: kindOf(name) }));
}

/** Whether all options of a choice are words of permission. */
export function isPermission(texts: readonly string[]): boolean {
  return texts.every((text) => wordsOf(text).some((word) => rejects.has(word) || permits.has(word)));
}

function kindOf(text: string): PermissionOption["kind"] {
  const words = wordsOf(text);
  const how = words.includes("always") ? "always" : "once";
  return words.some((word) => rejects.has(word)) ? `reject_${how}` : `allow_${how}`;
}

function wordsOf(text: string): readonly string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}'’]+/gu) ?? [];
}
