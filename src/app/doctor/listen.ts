// The doctor on the address that the service listens at, without taking it.
import { connect } from 'node:net';
import type { Config } from '#src/config.ts';
import { urlHost } from '#src/lib/url-host.ts';
import { type Checked, fine, problem } from './finding.ts';

/** Listening on every address includes this machine's own. */
const LOOPBACK: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' };

export type Living = { readonly url: string; readonly lives: boolean };

/** Whether the process that listens at HOST and PORT answers `/health/live` within `ms`. */
export async function askLiving(host: string, port: number, ms: number): Promise<Living> {
  const url = `http://${urlHost(LOOPBACK[host] ?? host)}:${port}/health/live`;
  const lives = await fetch(url, { signal: AbortSignal.timeout(ms) }).then(
    ({ status }) => status === 200,
    () => false,
  );
  return { url, lives };
}

const ANSWER_MS = 2000;

export async function checkListen({ listen: { host, port } }: Config): Promise<Checked> {
  if (port === 0) return fine(`any free port of ${host}`);
  if ((await askLiving(host, port, ANSWER_MS)).lives)
    return fine(`a service answers at ${host}, port ${port}`);
  return (await isTaken(LOOPBACK[host] ?? host, port))
    ? problem(`another program listens at ${host}, port ${port}, or the service there does not answer`)
    : fine(`${host}, port ${port}, is free`);
}

function isTaken(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, timeout: ANSWER_MS });
    const end = (taken: boolean) => {
      socket.destroy();
      resolve(taken);
    };
    socket.once('connect', () => end(true));
    socket.once('timeout', () => end(false));
    socket.once('error', () => end(false));
  });
}
