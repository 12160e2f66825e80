import type { Random } from "../soak/random.ts";
import { call, PiSession, text, thinking } from "./pi-session.ts";

/** A session as pi might have written it, with `length` entries: the order is as in pi, the contents are random. */
export function randomSession(random: Random, length: number): PiSession {
  const session = new PiSession();
  const ids: string[] = [];
  let open: string[] = [];
  let calls = 0;
  if (random.chance(0.8)) ids.push(session.system("prompt", { tools: "tools" }));
  ids.push(session.user("first"));
  for (let n = 0; n < length; n++) ids.push(step(n));
  return session;

  function step(n: number): string {
    const id = open.shift();
    if (id !== undefined && random.chance(0.9))
      return session.result(id, content(`r${n}`), { isError: random.chance(0.3) });
    open = [];
    const kind = random.pick(["user", "user", "answer", "answer", "answer", "calls", "calls", "rare"]);
    if (kind === "user") return session.user(content(`u${n}`));
    if (kind === "answer") return session.assistant(blocks(n), ending());
    return kind === "calls" ? withCalls(n) : rare(n);
  }

  function withCalls(n: number): string {
    const made = Array.from({ length: random.integer(1, 3) }, () => call(`c${calls++}`, { n }));
    const end = ending();
    // For another model a document has the texts and then the calls.
    const behind = end["model"] === undefined && random.chance(0.1) ? [text("behind")] : [];
    const id = session.assistant([...blocks(n), ...made, ...behind], end);
    open = made.map((block) => String(block["id"]));
    return id;
  }

  function rare(n: number): string {
    const target = ids.length > 0 ? random.pick(ids) : "e0";
    switch (random.integer(0, 8)) {
      case 0:
        return session.compaction(`summary ${n}`, random.chance(0.8) ? target : undefined);
      case 1:
        return session.append("branch_summary", { fromId: target, summary: random.chance(0.9) ? `branch ${n}` : "" });
      case 2:
        session.branch(random.chance(0.95) ? target : null);
        return session.user(`again ${n}`);
      case 3:
        return session.edit(target, random.chance(0.5) ? null : content(`edited ${n}`));
      case 4:
        return session.append("custom_message", { customType: "note", content: content(`note ${n}`), display: true });
      case 5:
        return session.append("custom_message", { customType: "pi-rpcd.carrier", content: "go", display: false });
      case 6: {
        const fields = { exitCode: random.integer(0, 1), cancelled: random.chance(0.1), truncated: false };
        return session.message("bashExecution", {
          command: `ls ${n}`,
          output: random.chance(0.8) ? `out ${n}` : "",
          ...fields,
          excludeFromContext: random.chance(0.3),
        });
      }
      case 7:
        return session.append(random.pick(["label", "custom", "usage", "session_info", "thinking_level_change"]), {
          targetId: target,
        });
      default:
        return session.system(`more ${n}`, { tools: null });
    }
  }

  function ending(): Readonly<Record<string, unknown>> {
    const stopReason = random.chance(0.2) ? random.pick(["error", "aborted", "length"]) : undefined;
    const model = random.chance(0.15) ? { model: "another" } : {};
    return { ...model, ...(stopReason === undefined ? {} : { stopReason }) };
  }

  function blocks(n: number): readonly unknown[] {
    const said = [text(`a${n}`), ...(random.chance(0.1) ? [text(" ")] : [])];
    if (random.chance(0.05)) return [];
    return random.chance(0.3) ? [thinking(`t${n}`, random.chance(0.5) ? "sig" : undefined), ...said] : said;
  }

  function content(said: string): unknown {
    const image = { type: "image", data: "iVBORw0KGgo=", mimeType: "image/png" };
    return random.chance(0.1) ? [text(said), image] : [text(said)];
  }
}
