/** Where a service manager starts the daemon from. */
export interface ServiceFacts {
  /** Node, its flags, and this program. */
  readonly program: readonly string[];
  readonly stateDir: string;
  readonly logFile: string;
  /** The user's own directories. */
  readonly home: string;
  readonly configHome: string;
  /** What the daemon, and each pi, is to have in its environment. */
  readonly environment: Readonly<Record<string, string>>;
  readonly uid: number;
}

export interface ServiceFile {
  readonly path: string;
  readonly text: string;
  /** Whether it holds values of variables, which may be secrets. */
  readonly isSecret: boolean;
}

/** All that installing and uninstalling does. */
export interface ServicePlan {
  readonly files: readonly ServiceFile[];
  /** Behind the files, in order; a program with its arguments. */
  readonly enable: readonly (readonly string[])[];
  readonly disable: readonly (readonly string[])[];
  /** Behind the removal of the files. */
  readonly forget: readonly (readonly string[])[];
  readonly status: readonly string[];
}

export type Platform = "systemd" | "launchd";
