import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { AgentMessage } from "../../extension/pi-types.ts";
import { openRpcDocument } from "../../protocol/openrpc.ts";
import { configurationSchema } from "../../server/configuration/settings.ts";
import { Random } from "../soak/random.ts";

export const traceClasses = ["prose", "code", "json", "cjk", "mixed"] as const;
export type TraceClass = (typeof traceClasses)[number];

/** How a service counts the tokens of a text. */
export type Tokenizer = (text: string) => number;

const root = join(import.meta.dirname, "..", "..");
const medianChars = 3 * 1_024;
const mostChars = 60 * 1_024;

const sentences = [
  "人工智能是计算机科学的一个分支，它企图了解智能的实质，并生产出一种新的智能机器。",
  "委员会上周四召开会议，经过长时间的讨论，决定把图书馆的建设推迟到明年春天。",
  "请先检查配置文件是否存在，然后重新启动服务，最后查看日志中的错误信息。",
  "这个函数返回用户列表，如果数据库没有连接，就会抛出异常并记录一条警告。",
  "春天来了，河边的柳树发出了嫩绿的新芽，孩子们在草地上放风筝。",
  "由于网络延迟较高，客户端会在三十秒后自动重试，最多重试五次。",
  "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。",
  "このファイルを開く前に、必ず設定を確認してから、サーバーを再起動してください。",
  "昨日の会議では、新しい図書館の建設を来年まで延期することが決まりました。",
  "エラーが発生した場合は、ログに詳細な情報が出力されますので、そちらを参照してください。",
  "인공지능은 인간의 학습능력과 추론능력을 인공적으로 구현하려는 컴퓨터 과학의 한 분야이다.",
  "서버를 다시 시작하기 전에 설정 파일이 올바른지 먼저 확인해 주세요.",
  "위원회는 오랜 논의 끝에 도서관 건설을 내년 봄까지 미루기로 결정했다.",
];

/** The sources of the texts of each class. */
const corpora: Readonly<Record<Exclude<TraceClass, "mixed">, (random: Random) => string>> = {
  prose: () => files("node_modules/@earendil-works/pi-coding-agent/docs/*.md").replaceAll(/^\|.*$/gm, ""),
  code: () => files("server/{session,edge,delivery}/*.ts"),
  json: (random) => `${logLines(random)}\n${schemas()}\n${minified()}`,
  cjk: (random) => Array.from({ length: 6_000 }, () => sentences[random.integer(0, sentences.length - 1)]).join("\n"),
};

function files(pattern: string): string {
  return globSync(pattern, { cwd: root })
    .toSorted()
    .map((path) => readFileSync(join(root, path), "utf8"))
    .join("\n");
}

function schemas(): string {
  return [openRpcDocument("0.1.0"), configurationSchema()].map((schema) => JSON.stringify(schema, null, 2)).join("\n");
}

function minified(): string {
  return JSON.stringify(JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")));
}

function logLines(random: Random): string {
  const levels = ["INFO", "WARN", "DEBUG", "ERROR"];
  const lines = Array.from({ length: 3_000 }, (_, at) => {
    const time = new Date(1_763_700_000_000 + at * 1_234).toISOString();
    return `${time} ${levels[random.integer(0, 3)]} [worker-${random.integer(1, 9)}] request id=${random.integer(1e9, 9e9).toString(16)} took ${random.integer(1, 9_999)}ms status=200`;
  });
  return lines.join("\n");
}

/** A run of one model: each turn has the messages before its request. Sizes are log-normal and follow from the seed. */
export function tokenTrace(kind: TraceClass, seed: number, turns: number): readonly (readonly AgentMessage[])[] {
  const random = new Random(seed);
  const kinds = kind === "mixed" ? (["prose", "code", "json", "cjk"] as const) : ([kind] as const);
  const texts = new Map(kinds.map((one) => [one, corpora[one](random)]));
  const piece = (length: number): string => {
    const text = texts.get(kinds[random.integer(0, kinds.length - 1)] as (typeof kinds)[number]) ?? "";
    const from = random.integer(0, Math.max(0, text.length - length));
    return text.slice(from, from + length).toWellFormed();
  };
  const size = (): number => {
    const [a, b] = [random.integer(1, 1e6) / 1e6, random.integer(0, 1e6) / 1e6];
    const normal = Math.sqrt(-2 * Math.log(a)) * Math.cos(2 * Math.PI * b);
    return Math.min(mostChars, Math.round(medianChars * Math.exp(1.57 * normal)));
  };
  let time = 1;
  const user = (): AgentMessage => ({
    role: "user",
    content: [{ type: "text", text: piece(random.integer(20, 900)) }],
    timestamp: time++,
  });
  const worked = (turn: number): AgentMessage[] => [
    assistant(
      [
        { type: "text", text: piece(random.integer(10, 700)) },
        { type: "toolCall", id: `call_${turn}`, name: "read", arguments: { path: piece(40), limit: turn } },
      ],
      time++,
    ),
    {
      role: "toolResult",
      toolCallId: `call_${turn}`,
      toolName: "read",
      content: [{ type: "text", text: piece(size()) }],
      isError: false,
      timestamp: time++,
    },
  ];
  const head: AgentMessage = { role: "system", content: piece(8_000), timestamp: 0 };
  return Array.from({ length: turns }, (_, turn) => {
    if (turn === 0) return [head, user()];
    return [...worked(turn), ...(random.integer(0, 5) === 0 ? [user()] : [])];
  });
}

export function assistant(content: unknown, timestamp: number, usage: object = {}): AgentMessage {
  return {
    role: "assistant",
    content,
    api: "test",
    provider: "test",
    model: "model",
    usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0, cost: { total: 0 }, ...usage },
    stopReason: "stop",
    timestamp,
  } as unknown as AgentMessage;
}

/** Like a service: its tokenizer counts the texts, and each message adds a constant. */
export function countedBy(tokenizer: Tokenizer, perMessage: number): (messages: readonly AgentMessage[]) => number {
  const known = new WeakMap<AgentMessage, number>();
  const one = (message: AgentMessage): number => {
    const { content } = message as { content: string | { text?: string; name?: string; arguments?: unknown }[] };
    if (typeof content === "string") return tokenizer(content) + perMessage;
    return content.reduce(
      (sum, { text, name, arguments: args }) =>
        sum + (text === undefined ? tokenizer(`${name}${JSON.stringify(args)}`) : tokenizer(text)),
      perMessage,
    );
  };
  return (messages) =>
    messages.reduce((sum, message) => {
      const tokens = known.get(message) ?? one(message);
      known.set(message, tokens);
      return sum + tokens;
    }, 0);
}

/** pi's estimate: a quarter of the characters. */
export function quarterOf(message: AgentMessage): number {
  const { content } = message as { content: string | { text?: string; name?: string; arguments?: unknown }[] };
  if (typeof content === "string") return Math.ceil(content.length / 4);
  const length = (text: string | undefined): number => text?.length ?? 0;
  return Math.ceil(
    content.reduce(
      (sum, { text, name, arguments: args }) =>
        sum + length(text) + (name === undefined ? 0 : length(name) + JSON.stringify(args).length),
      0,
    ) / 4,
  );
}
