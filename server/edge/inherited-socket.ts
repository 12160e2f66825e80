/** The first descriptor that a service manager hands over (sd_listen_fds). */
const firstDescriptor = 3;

/** The listening socket that systemd has handed to this very process; undefined without one. Given once. */
export function inheritedSocket(env: NodeJS.ProcessEnv = process.env): number | undefined {
  const { LISTEN_PID: pid, LISTEN_FDS: count } = env;
  if (Number(pid) !== process.pid || !(Number(count) >= 1)) return undefined;
  for (const name of ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"]) delete env[name];
  return firstDescriptor;
}
