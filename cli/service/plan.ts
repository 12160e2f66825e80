/** The facts from which a service manager starts the daemon. */
export interface ServiceFacts {
  /** Node, its flags, and this program. */
  readonly program: readonly string[];
  readonly stateDir: string;
  readonly logFile: string;
  /** The user's directories. */
  readonly home: string;
  readonly configHome: string;
  /** The environment of the daemon and of each pi. */
  readonly environment: Readonly<Record<string, string>>;
  readonly uid: number;
}

export interface ServiceFile {
  readonly path: string;
  readonly text: string;
  /** Whether it contains values of variables, which may be secrets. */
  readonly isSecret: boolean;
}

/** The steps of installing and uninstalling. */
export interface ServicePlan {
  readonly files: readonly ServiceFile[];
  /** Commands to run after the files are written, in order. */
  readonly enable: readonly (readonly string[])[];
  readonly disable: readonly (readonly string[])[];
  /** Commands to run after the files are removed. */
  readonly forget: readonly (readonly string[])[];
  readonly status: readonly string[];
}

export type Platform = "systemd" | "launchd";
