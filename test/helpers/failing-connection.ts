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
  /** The next this many times. `errcode` is SQLite's; by default that of a failed sync. */
  fail(fault: Fault, times?: number, errcode?: number): void;
}

const failedSync = 1034;

export function failingConnection(): FailingConnection {
  const left = new Map<Fault, { times: number; errcode: number }>();
  const commits: number[] = [];
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
    get opened() {
      return opened;
    },
    fail: (fault, times = 1, errcode = failedSync) => void left.set(fault, { times, errcode }),
    connect: (path) => {
      meet("open");
      opened += 1;
      const nth = opened;
      const real = connect(path);
      const wrapped = (sql: string): StatementSync => {
        const statement = real.prepare(sql);
        for (const method of ["run", "get", "all"] as const) {
          const real = statement[method].bind(statement) as (...parameters: never[]) => never;
          statement[method] = (...parameters: never[]) => {
            meet(sql);
            const result = real(...parameters);
            if (sql === "COMMIT") commits.push(nth);
            return result;
          };
        }
        return statement;
      };
      const handle: Pick<DatabaseSync, "prepare" | "exec" | "close"> = {
        prepare: wrapped,
        exec: (sql) => real.exec(sql),
        close: () => real.close(),
      };
      return handle as DatabaseSync;
    },
  };
}
