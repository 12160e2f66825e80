import type { DatabaseSync, StatementSync } from "node:sqlite";
import { type Connect, connect } from "../../server/store/connection.ts";

/** Where a connection fails: at a statement with this beginning, or when it is opened. */
export type Fault =
  | "COMMIT"
  | "BEGIN"
  | "INSERT"
  | "UPDATE commits"
  | "DELETE FROM prompts"
  | "SELECT max(seq)"
  | "SELECT * FROM feed"
  | "open";

/** Connections to a real database that fail like the system would. */
export interface FailingConnection {
  readonly connect: Connect;
  /** How many connections were opened. */
  readonly opened: number;
  /** Which connection, counted from 1, made each commit that succeeded. */
  readonly commits: readonly number[];
  /** Whether each of these was synced. */
  readonly synced: readonly boolean[];
  /** The next this many times. `errcode` is SQLite's; by default that of a failed sync. */
  fail(fault: Fault, times?: number, errcode?: number): void;
}

const failedSync = 1034;
/** SQLite's number of `synchronous=FULL`. */
const full = 2;

export function failingConnection(): FailingConnection {
  const left = new Map<Fault, { times: number; errcode: number }>();
  const commits: number[] = [];
  const synced: boolean[] = [];
  let opened = 0;

  function meet(sql: string): void {
    for (const [fault, ahead] of left) {
      if (!sql.startsWith(fault) || ahead.times === 0) continue;
      ahead.times -= 1;
      throw Object.assign(new Error(`disk I/O error (${fault})`), { code: "ERR_SQLITE_ERROR", errcode: ahead.errcode });
    }
  }

  return {
    commits,
    synced,
    get opened() {
      return opened;
    },
    fail: (fault, times = 1, errcode = failedSync) => void left.set(fault, { times, errcode }),
    connect: (path) => {
      meet("open");
      opened += 1;
      const nth = opened;
      const database = connect(path);
      const wrapped = (sql: string): StatementSync => {
        const statement = database.prepare(sql);
        for (const method of ["run", "get", "all"] as const) {
          const real = statement[method].bind(statement) as (...parameters: never[]) => never;
          statement[method] = (...parameters: never[]) => {
            meet(sql);
            const result = real(...parameters);
            if (sql === "COMMIT") {
              commits.push(nth);
              synced.push(database.prepare("PRAGMA synchronous").get()?.["synchronous"] === full);
            }
            return result;
          };
        }
        return statement;
      };
      const handle: Pick<DatabaseSync, "prepare" | "exec" | "close"> = {
        prepare: wrapped,
        exec: (sql) => database.exec(sql),
        close: () => database.close(),
      };
      return handle as DatabaseSync;
    },
  };
}
